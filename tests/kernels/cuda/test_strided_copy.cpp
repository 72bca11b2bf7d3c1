#include <algorithm>
#include <complex>
#include <cstdint>
#include <random>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/strided_copy_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::testing;

// a thread moves 16 bytes at a time, so that consecutive threads fill whole sectors
static_assert(cuda::detail::pack_width<cuda::detail::word_t<16>>() == 1);
static_assert(cuda::detail::pack_width<std::complex<double>>() == 1);
static_assert(alignof(cuda::detail::Pack<std::complex<double>, 1>) == 16);
static_assert(cuda::detail::pack_width<float>() == 4);
static_assert(cuda::detail::pack_width<float, double>() == 2);

namespace {

/// The number of wrong elements after a copy.
template <class T>
index_t miscopied(const Place& from, const Place& to) {
  const Placed<T> source(from, 1);
  const Placed<T> destination(to, 5000);
  strided_copy(Cuda{}, source.view(), destination.view());
  return destination.wrong(source.values()) + source.wrong(source.values());
}

template <class T>
index_t misfilled(const Place& to) {
  const Placed<T> destination(to);
  const T value = entry<T>(3);
  strided_fill(Cuda{}, destination.view(), value);
  HostArray<T> expected(to.extents.product());
  for (index_t i = 0; i < expected.size; ++i) expected[i] = value;
  return destination.wrong(expected);
}

}  // namespace

TEST_CASE_TEMPLATE("a transposed matrix has its elements where the indices say", T, std::uint8_t,
                   bfloat16, float, std::complex<float>, std::complex<double>) {
  // Extents at the edges of tiles and packs, and planes too narrow for tiles.
  for (const index_t rows : {1, 2, 3, 15, 16, 33, 64, 129, 196})
    for (const index_t cols : {1, 5, 16, 31, 64, 132})
      for (const int gap : {0, 1, 2, 4}) {
        CAPTURE(rows);
        CAPTURE(cols);
        CAPTURE(gap);
        const Shape extents = shape({rows, cols});
        CHECK(miscopied<T>(Place::of(extents, {1, 0}, {0, gap}),
                           Place::of(extents, {0, 1}, {0, gap}, gap)) == 0);
        CHECK(miscopied<T>(Place::of(extents, {0, 1}, {0, gap}, gap),
                           Place::of(extents, {1, 0}, {0, 0})) == 0);
      }
}

TEST_CASE_TEMPLATE("planes are transposed inside of other dimensions", T, std::int8_t, half, float,
                   double) {
  const Shape extents = shape({2, 17, 3, 40});
  for (const std::vector<int>& from : {std::vector<int>{3, 2, 1, 0},
                                       {0, 3, 2, 1},
                                       {2, 3, 0, 1},
                                       {1, 0, 3, 2},
                                       {0, 2, 1, 3},
                                       {3, 0, 1, 2}})
    for (const std::vector<int>& to : {std::vector<int>{0, 1, 2, 3}, {0, 2, 3, 1}, {1, 3, 0, 2}})
      for (const index_t first : {0, 3}) {
        CAPTURE(first);
        CHECK(miscopied<T>(Place::of(extents, from, {}, first),
                           Place::of(extents, to, {0, 0, 1, 0}, 2 * first)) == 0);
      }
}

TEST_CASE_TEMPLATE("rows are copied wherever they are aligned, of any length", T, bool, half,
                   std::int32_t, double, std::complex<float>, std::complex<double>) {
  for (const index_t cols : {1, 2, 3, 4, 7, 8, 16, 63, 64, 130, 1001})
    for (const int gap : {0, 1, 2, 8, 15})
      for (const index_t first : {0, 1, 4, 16}) {
        CAPTURE(cols);
        CAPTURE(gap);
        CAPTURE(first);
        const Shape extents = shape({3, 5, cols});
        CHECK(miscopied<T>(Place::of(extents, {}, {0, 0, gap}, first),
                           Place::of(extents, {}, {}, 0)) == 0);
        CHECK(miscopied<T>(Place::of(extents, {}, {}, first),
                           Place::of(extents, {1, 0, 2}, {0, 1, 16}, first)) == 0);
      }
}

TEST_CASE_TEMPLATE("rows are shifted from any byte of a word to any other one", T, std::uint8_t,
                   half) {
  for (const index_t cols : {31, 32, 33, 34, 35, 36, 1025})
    for (index_t from = 0; from < 4; ++from)
      for (index_t to = 0; to < 4; ++to)
        for (const int gap : {1, 4}) {  // alignment of rows: arbitrary, or all alike
          CAPTURE(cols);
          CAPTURE(from);
          CAPTURE(to);
          const Shape extents = shape({5, cols});
          CHECK(miscopied<T>(Place::of(extents, {}, {0, gap}, from),
                             Place::of(extents, {}, {0, 2 * gap}, to)) == 0);
        }
}

TEST_CASE("a run of bytes that is contiguous in both views is one copy, also to the host") {
  const Shape extents = shape({4, 6, 5});
  CHECK(miscopied<float>(Place::of(extents), Place::of(extents, {}, {}, 1)) == 0);
  CHECK(miscopied<float>(Place::of(extents, {2, 0, 1}), Place::of(extents, {2, 0, 1})) == 0);

  const Placed<float> device(Place::of(extents));
  HostArray<float> host(extents.product()), back(extents.product());
  for (index_t i = 0; i < host.size; ++i) host[i] = float(i);
  strided_copy(Cuda{}, ConstView::dense(host.elements.get(), DType::float32, extents),
               device.view());
  CHECK(device.wrong(host) == 0);
  strided_copy(Cuda{}, device.view(), View::dense(back.elements.get(), DType::float32, extents));
  cuda::current_stream().synchronize();
  index_t wrong = 0;
  for (index_t i = 0; i < host.size; ++i) wrong += back[i] != host[i];
  CHECK(wrong == 0);
}

TEST_CASE(
    "nothing is copied to or from views without elements, and one element without dimensions") {
  CHECK(miscopied<float>(Place::of(shape({0})), Place::of(shape({0}))) == 0);
  CHECK(miscopied<float>(Place::of(shape({3, 0, 2})), Place::of(shape({3, 0, 2}))) == 0);
  CHECK(miscopied<double>(Place::of(shape({})), Place::of(shape({}), {}, {}, 3)) == 0);
  strided_copy(Cuda{}, ConstView{nullptr, DType::float32, shape({2, 0}), shape({0, 1})},
               View{nullptr, DType::float32, shape({2, 0}), shape({0, 1})});
}

TEST_CASE("an element of the source may be repeated") {
  const Shape extents = shape({20, 30, 4});
  for (int d = 0; d < 3; ++d)
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {1, 0, 2}, {2, 1, 0}}) {
      CHECK(miscopied<float>(Place::of(extents, order).repeating(d), Place::of(extents)) == 0);
      CHECK(miscopied<bool>(Place::of(extents).repeating(d), Place::of(extents, order)) == 0);
    }
}

TEST_CASE("views of up to eight dimensions that do not merge are copied, steps and all") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 120; ++trial) {
    CAPTURE(trial);
    const int dims = 1 + int(random() % 8);
    Shape extents = Shape::filled(dims, 1);
    std::vector<int> from, to, gaps;
    for (int d = 0; d < dims; ++d) {
      extents[d] = 1 + index_t(random() % (dims > 5 ? 3 : 6));
      from.push_back(d);
      to.push_back(d);
      gaps.push_back(int(random() % 3));
    }
    std::shuffle(from.begin(), from.end(), random);
    std::shuffle(to.begin(), to.end(), random);
    const Place a = Place::of(extents, from, gaps, index_t(random() % 4));
    const Place b =
        Place::of(extents, to, random() % 2 ? gaps : std::vector<int>{}, index_t(random() % 4));
    CHECK(miscopied<std::uint8_t>(a, b) == 0);
    CHECK(miscopied<float>(a, b) == 0);
    CHECK(miscopied<std::complex<double>>(a, b) == 0);
  }
}

TEST_CASE_TEMPLATE("a fill sets the elements of a view and no others", T, bool, half, float,
                   std::int64_t, std::complex<float>, std::complex<double>) {
  for (const index_t cols : {0, 1, 3, 8, 64, 257})
    for (const int gap : {0, 1, 16})
      for (const index_t first : {0, 1}) {
        CAPTURE(cols);
        const Shape extents = shape({3, cols});
        CHECK(misfilled<T>(Place::of(extents, {}, {0, gap}, first)) == 0);
        CHECK(misfilled<T>(Place::of(extents, {1, 0}, {0, gap}, first)) == 0);
      }
}
