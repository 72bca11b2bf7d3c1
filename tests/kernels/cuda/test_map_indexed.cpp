// Random elements on a GPU: bitwise equal to the host's, whose values are tested elsewhere.
#include <complex>
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/map_indexed_cuda.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/kernels/permuted_index.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace {

struct Index {
  CLEAVE_HOST_DEVICE index_t operator()(index_t i) const { return i; }
};

/// A box of [7, 40, 9], drawn on the host and on the device, with dimensions in any storage order.
template <class T, class F>
void check_drawn(const F& f) {
  const Box box{shape({2, 5, 1}), shape({6, 38, 8})};
  const Shape global = shape({7, 40, 9});
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}}) {
    const Placed<T> out(Place::of(box.extents(), order, {0, 1, 2}, 3));
    map_indexed(On<Cuda>{}, f, box, global, out.write());
    HostArray<T> expected(box.extents().product());
    map_indexed(
        On<Host>{}, f, box, global,
        Strided<T>{expected.elements.get(), box.extents(), row_major_strides(box.extents())});
    CHECK(out.wrong(expected) == 0);
  }
}

template <class F>
Drawn<F> drawn(const F& f) {
  return {f, {0x123456789u, 0x987654321u}};
}

}  // namespace

TEST_CASE("a function of indices gets the row-major index in the global array") {
  const Box box{shape({1, 2}), shape({3, 5})};
  const Placed<index_t> out(Place::of(shape({2, 3}), {1, 0}));
  map_indexed(On<Cuda>{}, Index{}, box, shape({4, 10}), out.write());
  HostArray<index_t> expected(6);
  for (index_t i = 0; i < 6; ++i) expected[i] = (1 + i / 3) * 10 + 2 + i % 3;
  CHECK(out.wrong(expected) == 0);
  const Strided<index_t> nothing{nullptr, shape({0, 3}), shape({3, 1})};
  map_indexed(On<Cuda>{}, Index{}, Box::of(nothing.extents), nothing.extents, nothing);
}

TEST_CASE("a GPU draws the bits that the host draws") {
  check_drawn<float>(drawn(Uniform<float>{-1, 3}));
  check_drawn<double>(drawn(Uniform<double>{-1, 3}));
  check_drawn<half>(drawn(Uniform<half>{half(-1.0f), half(3.0f)}));
  check_drawn<std::complex<float>>(drawn(Uniform<std::complex<float>>{{0, 0}, {1, 2}}));
  check_drawn<float>(drawn(Normal<float>{1, 2}));
  check_drawn<double>(drawn(Normal<double>{1, 2}));
  check_drawn<std::complex<double>>(drawn(Normal<std::complex<double>>{{0, 0}, {1, 0}}));
  check_drawn<double>(drawn(TruncatedNormal<double>(0, 1, -2, 2)));
  check_drawn<float>(drawn(TruncatedNormal<float>(0, 1, 4, 9)));
  check_drawn<std::int32_t>(drawn(WholeNumbers<std::int32_t>{-5, 17}));
  check_drawn<bool>(drawn(Bernoulli<bool>{0.3}));
  check_drawn<index_t>(Permutation(7 * 40 * 9, {5, 6}));
}

TEST_CASE_TEMPLATE("dropout on a GPU gives the results of the host", T, float, double, half,
                   std::complex<float>) {
  const Box box{shape({2, 0}), shape({50, 70})};
  const Shape global = shape({60, 70});
  const DroppedOut f(0.3, {1, 2});
  const Placed<T> x(Place::of(box.extents(), {1, 0}, {2, 0}, 1));
  const Placed<T> y(Place::of(box.extents()));
  map_indexed(On<Cuda>{}, f, box, global, y.write(), x.read());
  const auto values = x.values();
  HostArray<T> expected(values.size);
  const Shape dense = row_major_strides(box.extents());
  map_indexed(On<Host>{}, f, box, global, Strided<T>{expected.elements.get(), box.extents(), dense},
              Strided<const T>{values.elements.get(), box.extents(), dense});
  CHECK(y.wrong(expected) == 0);
}
