// Arrays of more than 2^32 elements: bytes with a few marks, of which a few are checked.
#include <cstdint>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/arg_reduce_dim_cuda.hpp>
#include <cleave/kernels/cuda/map_elements_cuda.hpp>
#include <cleave/kernels/cuda/reduce_dims_cuda.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>

#include "cases.hpp"
#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

struct Increment {
  CLEAVE_HOST_DEVICE std::int8_t operator()(std::int8_t a) const { return std::int8_t(a + 1); }
};

/// Bytes on the device, allocated with one spare byte.
class Bytes {
 public:
  explicit Bytes(index_t size)
      : size_(size), memory_(allocate_bytes(Cuda{}, std::size_t(size + 1))) {
    strided_fill(Cuda{}, View::dense(data(), DType::int8, shape({size + 1})), std::int8_t(5));
  }
  std::int8_t* data() const { return static_cast<std::int8_t*>(memory_.get()); }

  std::int8_t get(index_t at) const {
    std::int8_t value = 0;
    copy(&value, data() + at);
    return value;
  }
  void set(index_t at, std::int8_t value) const { copy(data() + at, &value); }
  bool untouched_behind() const { return get(size_) == 5; }

 private:
  static void copy(void* to, const void* from) {
    cuda::check(cudaMemcpyAsync(to, from, 1, cudaMemcpyDefault, cuda::current_stream().get()),
                "test");
    cuda::current_stream().synchronize();
  }

  index_t size_;
  std::shared_ptr<void> memory_;
};

/// Whether the device has that much free memory. The stand-in would take hours.
bool has_room(index_t bytes) {
#if defined(__CUDACC__)
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "test");
  if (index_t(free) > bytes + (index_t{1} << 30)) return true;
#else
  static_cast<void>(bytes);
#endif
  skip("needs a GPU with 10 GB of free memory");
  return false;
}

constexpr index_t rows = 3, cols = (index_t{1} << 32) / 3 + 1001, large = rows * cols;

}  // namespace

TEST_CASE("marks beyond 2^32 elements are copied, row by row and transposed") {
  if (!has_room(2 * large)) return;
  const Bytes from(large), to(large);
  const index_t marks[][2] = {{0, 0}, {0, cols - 1}, {1, cols / 2}, {2, 1}, {2, cols - 1}};
  for (const auto& m : marks) from.set(m[0] * cols + m[1], std::int8_t(m[0] + 7));
  const auto view = [](const Bytes& bytes, const Shape& extents, const Shape& strides) {
    return View{bytes.data(), DType::int8, extents, strides};
  };
  strided_copy(Cuda{}, view(from, shape({rows, cols}), shape({cols, 1})),
               view(to, shape({rows, cols}), shape({1, rows})));
  for (const auto& m : marks) CHECK(to.get(m[1] * rows + m[0]) == m[0] + 7);
  CHECK(to.get(large / 2) == 5);
  CHECK(to.untouched_behind());

  const index_t side = 65537;
  from.set(65536 * side + 3, 77);
  from.set(12 * side + 65535, 78);
  strided_copy(Cuda{}, view(from, shape({side, side - 2}), shape({side, 1})),
               view(to, shape({side, side - 2}), shape({1, side})));
  CHECK(to.get(3 * side + 65536) == 77);
  CHECK(to.get(65534 * side + 12) == from.get(12 * side + 65534));

  map_elements(On<Cuda>{}, Increment{}, Strided<std::int8_t>{to.data(), shape({large}), shape({1})},
               Strided<const std::int8_t>{from.data(), shape({large}), shape({1})});
  CHECK(to.get(65536 * side + 3) == 78);
  CHECK(to.get(large - 1) == from.get(large - 1) + 1);
  CHECK(to.untouched_behind());
}

TEST_CASE("sums, extreme elements and reductions over ranks reach beyond 2^32 elements") {
  if (!has_room(2 * large)) return;
  const Bytes x(large), y(large);
  x.set(large - 2, 9);
  x.set(large / 2, 8);
  const Placed<index_t> count(Place::of(shape({}))), at(Place::of(shape({})));
  const Strided<const std::int8_t> all{x.data(), shape({large}), shape({1})};
  reduce_dims<Sum>(On<Cuda>{}, all, 1u, count.write());
  CHECK(count.result()[0] == 5 * large + 4 + 3);
  arg_reduce_dim<Max>(On<Cuda>{}, all, 0, 100, static_cast<std::int8_t*>(nullptr), at.data());
  CHECK(at.result()[0] == large - 2 + 100);

  const View first = View::dense(x.data(), DType::int8, shape({large}));
  const View second = View::dense(y.data(), DType::int8, shape({large}));
  const ConstView operands[] = {first, second};
  reduce_range(Cuda{}, ReduceOp::sum, operands, second, 1, large - 1);
  CHECK(y.get(0) == 5);
  CHECK(y.get(large - 2) == 14);
  CHECK(y.get(large / 2) == 13);
  CHECK(y.get(large - 1) == 5);
  CHECK(y.untouched_behind());
}
