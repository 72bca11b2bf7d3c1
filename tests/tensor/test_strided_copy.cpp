#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/tensor/copy_loops.hpp>
#include <cleave/tensor/strided_copy.hpp>

using namespace cleave;

namespace {

// A strided array in a buffer that is larger than necessary.
struct Place {
  Shape strides{};
  index_t first = 0;  // offset of element (0, .., 0)
  index_t size = 0;   // elements of the buffer
};

// Dimensions in the storage order `order` (outermost first), with gaps between rows and around.
Place place(const Shape& extents, const std::vector<int>& order, const std::vector<int>& gaps) {
  Place p;
  p.strides.dims = extents.dims;
  index_t step = 1;
  for (int i = extents.dims - 1; i >= 0; --i) {
    const int d = order[std::size_t(i)];
    p.strides[d] = step;
    step *= extents[d] + gaps[std::size_t(i)];
  }
  p.first = 5;
  p.size = step + 10;
  return p;
}

// Offsets of all elements in row-major order, computed one by one.
std::vector<index_t> offsets(const Shape& extents, const Place& p) {
  std::vector<index_t> all;
  Shape index = Shape::filled(extents.dims, 0);
  const index_t n = extents.product();
  for (index_t i = 0; i < n; ++i) {
    index_t offset = p.first;
    for (int d = 0; d < extents.dims; ++d) offset += index[d] * p.strides[d];
    all.push_back(offset);
    for (int d = extents.dims - 1; d >= 0 && ++index[d] == extents[d]; --d) index[d] = 0;
  }
  return all;
}

template <class T>
T element(index_t i) {
  if constexpr (is_complex<T>) {
    using R = typename T::value_type;
    return T(R(i), R(-i));
  } else {
    return T(i % 251);
  }
}

// Copies, then checks every element of the destination's buffer: elements of the view must have the
// source's values, and all others must be unchanged.
template <class T>
bool copies(const Shape& extents, const Place& from, const Place& to) {
  std::vector<T> source(std::size_t(from.size)), destination(std::size_t(to.size));
  for (index_t i = 0; i < from.size; ++i) source[std::size_t(i)] = element<T>(i);
  for (index_t i = 0; i < to.size; ++i) destination[std::size_t(i)] = element<T>(7 * i + 3);
  std::vector<T> expected = destination;
  const auto a = offsets(extents, from), b = offsets(extents, to);
  for (std::size_t i = 0; i < a.size(); ++i)
    expected[std::size_t(b[i])] = source[std::size_t(a[i])];
  const std::vector<T> before = source;
  strided_copy(ConstView{source.data() + from.first, dtype_of<T>(), extents, from.strides},
               View{destination.data() + to.first, dtype_of<T>(), extents, to.strides});
  return destination == expected && source == before;
}

std::vector<int> row_major(int dims) {
  std::vector<int> order;
  for (int d = 0; d < dims; ++d) order.push_back(d);
  return order;
}

Shape shape(std::initializer_list<index_t> extents) {
  Shape s;
  for (const index_t extent : extents) s[s.dims++] = extent;
  return s;
}

}  // namespace

TEST_CASE_TEMPLATE(
    "a transposed matrix has its elements where the indices say, whatever its extents", T,
    std::uint8_t, bfloat16, float, double, std::complex<double>) {
  // Extents at the edges of tiles (64 bytes), narrow, tall, and more than one band of tiles.
  for (const index_t rows : {1, 2, 3, 15, 16, 17, 63, 64, 65, 130, 300})
    for (const index_t cols : {1, 2, 5, 16, 31, 33, 64, 96, 129, 260})
      for (const int gap : {0, 1, 16}) {
        const Shape extents = shape({rows, cols});
        CAPTURE(rows);
        CAPTURE(cols);
        CAPTURE(gap);
        CHECK(
            copies<T>(extents, place(extents, {1, 0}, {0, gap}), place(extents, {0, 1}, {0, gap})));
        CHECK(copies<T>(extents, place(extents, {0, 1}, {0, gap}), place(extents, {1, 0}, {0, 0})));
      }
}

TEST_CASE_TEMPLATE("a transposed matrix larger than the cache arrives too", T, std::uint8_t, half,
                   float, double, std::complex<double>) {
  // Whole cache lines of the destination are written with streaming stores; remainders are not.
  const index_t n = 64 * 16 / index_t(sizeof(T)) * 4;
  for (const index_t rest : {0, 3}) {
    const index_t rows = 2 * n, cols = n + rest;
    std::vector<T> source(std::size_t(rows * cols));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = element<T>(index_t(i));
    std::vector<T> buffer(std::size_t(rows * cols) + 64, T{});
    T* destination = buffer.data();
    while (reinterpret_cast<std::uintptr_t>(destination) % 64 != 0) ++destination;
    const Shape extents = shape({rows, cols});
    strided_copy(ConstView{source.data(), dtype_of<T>(), extents, shape({cols, 1})},
                 View{destination, dtype_of<T>(), extents, shape({1, rows})});
    index_t wrong = 0;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < cols; ++j)
        wrong += destination[j * rows + i] != source[std::size_t(i * cols + j)];
    CHECK(wrong == 0);
  }
}

TEST_CASE("runs of every length are moved whole and alone") {
  for (index_t run = 1; run <= 140; ++run)
    for (const index_t rows : {1, 2, 40}) {
      const Shape extents = shape({rows, 3, run});
      CAPTURE(run);
      const Place gaps = place(extents, {0, 1, 2}, {0, 0, 3});
      CHECK(copies<std::uint8_t>(extents, gaps, place(extents, {0, 1, 2}, {0, 1, 0})));
      CHECK(copies<std::uint8_t>(extents, gaps, place(extents, {1, 0, 2}, {0, 0, 1})));
      CHECK(copies<float>(extents, place(extents, {1, 0, 2}, {0, 0, 0}), gaps));
    }
}

TEST_CASE("runs that bypass the caches are moved whole and alone, from and to any address") {
  const std::size_t least_array = detail::streaming_array_bytes;
  constexpr std::size_t least_part = detail::streaming_run_bytes;
  const auto copies_runs = [](std::size_t least, std::size_t array) {
    std::vector<std::uint8_t> source(least + 300), destination(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::uint8_t(i * 37 % 251);
    for (const std::size_t run : {least - 1, least, least + 1, least + 100})
      for (const std::size_t from : {0u, 1u, 16u})
        for (const std::size_t to : {0u, 3u, 64u, 127u}) {
          std::fill(destination.begin(), destination.end(), std::uint8_t(255));
          const Shape extents = Shape::filled(1, index_t(run)), strides = Shape::filled(1, 1);
          strided_copy(ConstView{source.data() + from, DType::uint8, extents, strides},
                       View{destination.data() + to, DType::uint8, extents, strides}, array);
          const auto in = source.begin() + std::ptrdiff_t(from);
          const auto out = destination.begin() + std::ptrdiff_t(to);
          CHECK(std::equal(in, in + std::ptrdiff_t(run), out));
          CHECK(std::count(destination.begin(), destination.end(), 255) ==
                std::ptrdiff_t(destination.size() - run));
        }
  };
  copies_runs(least_array, 0);
  copies_runs(least_part, least_array);
  const index_t run = index_t(least_part) + 9, rows = index_t(least_array) / run + 1;
  const Shape extents = shape({rows, run});
  for (const int gap : {0, 3})
    CHECK(copies<std::uint8_t>(extents, place(extents, {0, 1}, {0, 5}),
                               place(extents, {0, 1}, {0, gap})));
}

TEST_CASE_TEMPLATE("random permutations of up to five dimensions, with gaps, arrive", T,
                   std::uint8_t, half, float, double, std::complex<double>) {
  std::mt19937 random(20240807);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  for (int trial = 0; trial < 400; ++trial) {
    CAPTURE(trial);
    Shape extents;
    extents.dims = 1 + below(5);
    for (int d = 0; d < extents.dims; ++d)
      extents[d] = extents.dims <= 2 ? 1 + below(200) : 1 + below(12);
    const auto arrange = [&] {
      std::vector<int> order = row_major(extents.dims), gaps(order.size());
      for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[std::size_t(below(int(i)))]);
      for (int& gap : gaps) gap = below(3) == 0 ? below(4) : 0;
      return place(extents, order, gaps);
    };
    const Place from = arrange(), to = arrange();
    CHECK(copies<T>(extents, from, to));
  }
}

TEST_CASE("a source that repeats an element, or runs backwards, is read as its strides say") {
  std::vector<std::int32_t> source{0, 1, 2, 3, 4, 5}, destination(12, -1);
  const View to = View::dense(destination.data(), DType::int32, shape({2, 6}));
  strided_copy({source.data(), DType::int32, shape({2, 6}), shape({0, 1})}, to);
  CHECK(destination == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  strided_copy({source.data() + 5, DType::int32, shape({2, 6}), shape({0, -1})}, to);
  CHECK(destination == std::vector<std::int32_t>{5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0});
  strided_copy({source.data() + 4, DType::int32, shape({2, 6}), shape({1, 0})}, to);
  CHECK(destination == std::vector<std::int32_t>{4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5});
}

TEST_CASE("a scalar is copied, an empty array is not") {
  double source = 3, destination = 0;
  strided_copy(ConstView::dense(&source, DType::float64, {}),
               View::dense(&destination, DType::float64, {}));
  CHECK(destination == 3);
  strided_copy(ConstView::dense(nullptr, DType::float64, shape({4, 0})),
               View::dense(nullptr, DType::float64, shape({4, 0})));
  CHECK(destination == 3);
}

TEST_CASE("a copy is planned as the fewest loops around the longest runs") {
  using detail::plan_copy;
  const Shape e = shape({4, 5, 6});

  auto plan = plan_copy(e, row_major_strides(e), row_major_strides(e), 8);
  CHECK(plan.run == 4 * 5 * 6 * 8);
  CHECK(plan.outer().extent * plan.inner().extent == 1);

  plan = plan_copy(e, shape({60, 6, 1}), row_major_strides(e), 8);  // each row of a larger array
  CHECK(plan.run == 5 * 6 * 8);
  CHECK(plan.inner().extent == 4);

  plan = plan_copy(e, shape({6, 24, 1}), row_major_strides(e), 4);  // two dimensions exchanged
  CHECK(plan.run == 6 * 4);
  CHECK(plan.outer().extent == 4);
  CHECK(plan.inner().extent == 5);

  plan = plan_copy(shape({1, 7, 1}), shape({99, 1, 98}), shape({97, 2, 96}), 1);
  CHECK(plan.run == 1);
  CHECK(plan.inner().extent == 7);
  CHECK(plan.inner().to == 2);
}

TEST_CASE_TEMPLATE("a fill sets the elements of the view and no other", T, bool, std::uint8_t, half,
                   std::int64_t, float, std::complex<float>) {
  std::mt19937 random(77);
  for (int trial = 0; trial < 50; ++trial) {
    Shape extents;
    extents.dims = int(random() % 4);
    for (int d = 0; d < extents.dims; ++d) extents[d] = index_t(random() % 9);
    std::vector<int> order = row_major(extents.dims), gaps(order.size(), int(random() % 2));
    if (order.size() > 1) std::swap(order[0], order[random() % order.size()]);
    const Place p = place(extents, order, gaps);
    const auto buffer = std::make_unique<T[]>(std::size_t(p.size));
    strided_fill(Host{}, View{buffer.get() + p.first, dtype_of<T>(), extents, p.strides}, T(1));
    std::vector<T> expected(std::size_t(p.size), T{});
    for (const index_t at : offsets(extents, p)) expected[std::size_t(at)] = T(1);
    bool equal = true;
    for (index_t i = 0; i < p.size; ++i)
      equal = equal && buffer[std::size_t(i)] == expected[std::size_t(i)];
    CAPTURE(to_string(extents));
    CHECK(equal);
  }
}
