#include <complex>
#include <cstdint>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/core/half.hpp>
#include <cleave/kernels/host/map_elements.hpp>

using namespace cleave;
using namespace cleave::kernels;

namespace {

template <class T, int Rank>
Tensor<T, Rank> counting(const std::array<index_t, std::size_t(Rank)>& extents, int from) {
  Tensor<T, Rank> t(extents);
  for (index_t i = 0; i < t.size(); ++i) t.data()[i] = T(float(from + int(i % 97)));
  return t;
}

}  // namespace

TEST_CASE_TEMPLATE("a map sees every element once, whatever the strides", T, float, double, half,
                   std::complex<double>, std::int64_t, std::uint8_t) {
  for (const index_t n : {0, 1, 3, 255, 256, 257, 600}) {
    for (const index_t m : {0, 1, 2, 5, 40}) {
      const auto plain = counting<T, 2>({m, n}, 1);
      const auto transposed = counting<T, 2>({n, m}, 2).transpose(0, 1);
      const auto sparse = counting<T, 3>({m, n, 2}, 3).select(2, 1);
      Tensor<T, 2> out({m, n});
      map_elements(
          On<Host>{}, [](T a, T b, T c) { return T(a + b + c); }, write(out), read(plain),
          read(transposed), read(sparse));
      index_t wrong = 0;
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j)
          wrong += !(out(i, j) == T(plain(i, j) + transposed(i, j) + sparse(i, j)));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("transposed planes are read tile by tile") {
  for (const index_t n : {15, 16, 17, 130}) {
    const auto a = counting<float, 3>({3, n, 35}, 1).transpose(1, 2);  // [3, 35, n]
    const auto b = counting<float, 3>({n, 35, 3}, 2).permute({2, 1, 0});
    const Tensor<float, 3> out({3, 35, n});
    map_elements(
        On<Host>{}, [](float x, float y) { return x - 2 * y; }, write(out), read(a), read(b));
    index_t wrong = 0;
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 35; ++j)
        for (index_t k = 0; k < n; ++k) wrong += out(i, j, k) != a(i, j, k) - 2 * b(i, j, k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("the result may be a column of a wider array") {
  const auto a = counting<float, 2>({5, 1}, 1);
  const Tensor<float, 2> wide({5, 4});
  wide.fill_(-1);
  map_elements(On<Host>{}, [](float x) { return 3 * x; }, write(wide.slice(1, 2, 3)), read(a));
  for (index_t i = 0; i < 5; ++i)
    for (index_t j = 0; j < 4; ++j) CHECK(wide(i, j) == (j == 2 ? 3 * a(i, 0) : -1));
}

TEST_CASE("a stride of 0 repeats an element") {
  for (const index_t n : {1, 10, 300, 5000}) {
    const index_t m = 4, l = 3;
    const auto a = counting<double, 3>({l, m, n}, 0);
    const auto rows = counting<double, 1>({n}, 5);
    const auto cols = counting<double, 2>({l, m}, 9);
    const double scalar = 0.5;
    const Shape extents(a.shape());
    Shape row_strides = Shape::filled(3, 0), col_strides = Shape::filled(3, 0);
    row_strides[2] = 1;
    col_strides[0] = m;
    col_strides[1] = 1;
    Tensor<double, 3> out(a.shape());
    map_elements(
        On<Host>{}, [](double x, double y, double z, double s) { return x * s + y - z; },
        write(out), read(a), Strided<const double>{rows.data(), extents, row_strides},
        Strided<const double>{cols.data(), extents, col_strides},
        Strided<const double>{&scalar, extents, Shape::filled(3, 0)});
    index_t wrong = 0;
    for (index_t i = 0; i < l; ++i)
      for (index_t j = 0; j < m; ++j)
        for (index_t k = 0; k < n; ++k)
          wrong += out(i, j, k) != a(i, j, k) * 0.5 + rows(k) - cols(i, j);
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows too short to be worth a call each are processed together") {
  for (const index_t m : {2, 63, 64, 65, 409, 410, 1000})
    for (const index_t n : {1, 10, 63, 64}) {
      const auto plain = counting<double, 2>({m, n}, 1);
      const auto transposed = counting<double, 2>({n, m}, 2).transpose(0, 1);
      const auto spaced = counting<double, 3>({m, 3, n}, 3).select(1, 1);
      const auto row = counting<double, 1>({n}, 4), column = counting<double, 1>({m}, 5);
      const Shape extents(plain.shape());
      Shape of_row = Shape::filled(2, 0), of_column = of_row;
      of_row[1] = of_column[0] = 1;
      const Tensor<double, 2> out({m, n}), strided = Tensor<double, 3>({m, 2, n}).select(1, 0);
      for (const auto& to : {out, strided}) {
        map_elements(
            On<Host>{},
            [](double a, double b, double c, double d, double e) {
              return a + 3 * b - 5 * c + 7 * d - 11 * e;
            },
            write(to), read(plain), read(transposed), read(spaced),
            Strided<const double>{row.data(), extents, of_row},
            Strided<const double>{column.data(), extents, of_column});
        index_t wrong = 0;
        for (index_t i = 0; i < m; ++i)
          for (index_t j = 0; j < n; ++j)
            wrong += to(i, j) != plain(i, j) + 3 * transposed(i, j) - 5 * spaced(i, j) +
                                     7 * row(j) - 11 * column(i);
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("the result may have another type than the inputs, and these from each other") {
  const auto a = counting<float, 1>({500}, -40);
  const auto b = counting<std::int32_t, 1>({500}, 3);
  Tensor<bool, 1> out({500});
  map_elements(
      On<Host>{}, [](float x, std::int32_t y) { return x > float(y % 7); }, write(out), read(a),
      read(b));
  index_t wrong = 0;
  for (index_t i = 0; i < 500; ++i) wrong += out(i) != (a(i) > float(b(i) % 7));
  CHECK(wrong == 0);
}

TEST_CASE("a scalar is an array without dimensions") {
  const Tensor<float, 0> a({}, {3.0f}), b({}, {4.0f}), out;
  map_elements(On<Host>{}, [](float x, float y) { return x * y; }, write(out), read(a), read(b));
  CHECK(out() == 12.0f);
}

TEST_CASE("dimensions that are dense in all arrays become one loop") {
  const Shape extents(std::array<index_t, 4>{2, 3, 1, 5});
  const Shape dense = row_major_strides(extents), none = Shape::filled(4, 0);
  const kernels::detail::MapLoops<2> merged(extents, {&dense, &none});
  CHECK(merged.dims == 2);
  CHECK(merged.extents[0] == 1);
  CHECK(merged.extents[1] == 30);
  Shape padded = dense;
  padded[0] = 20;
  const kernels::detail::MapLoops<2> split(extents, {&dense, &padded});
  CHECK(split.dims == 3);
  CHECK(split.extents[1] == 2);
  CHECK(split.extents[2] == 15);
}
