#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/host/arg_reduce_dim.hpp>

#include "reduced_extents.hpp"

using namespace cleave;
using namespace cleave::kernels;

namespace {

template <class Op, class T>
void check(const Tensor<T, 3>& in, int dim) {
  std::array<int, 2> rest{};
  for (int d = 0, n = 0; d < 3; ++d)
    if (d != dim) rest[std::size_t(n++)] = d;
  const index_t rows = in.extent(rest[0]), cols = in.extent(rest[1]);
  std::vector<T> values(std::size_t(rows * cols) + 1, T(9));
  std::vector<index_t> indices(values.size(), -9);
  arg_reduce_dim<Op>(On<Host>{}, read(in), dim, 100, values.data(), indices.data());
  std::size_t n = 0;
  index_t wrong = 0;
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = 0; j < cols; ++j, ++n) {
      const auto line = in.select(rest[1], j).select(rest[0], i);
      index_t best = 0;
      for (index_t k = 1; k < line.extent(0); ++k)
        if (std::is_same_v<Op, Max> ? line(k) > line(best) : line(k) < line(best)) best = k;
      if (line.extent(0) == 0) wrong += indices[n] != no_index;
      else wrong += indices[n] != 100 + best || !(values[n] == line(best));
    }
  }
  CHECK(wrong == 0);
  CHECK(indices.back() == -9);
  CHECK(values.back() == T(9));
}

}  // namespace

TEST_CASE_TEMPLATE("the first extreme element is found along any dimension", T, float, double,
                   std::int64_t, std::uint8_t, half) {
  for (const std::array<index_t, 3>& extents : reduced_extents) {
    const Tensor<T, 3> plain(extents);
    // few distinct values, many ties
    for (index_t i = 0; i < plain.size(); ++i) plain.data()[i] = T(float(i * 7 % 5));
    for (int dim = 0; dim < 3; ++dim) {
      CAPTURE(dim);
      check<Min>(plain, dim);
      check<Max>(plain, dim);
      check<Min>(plain.transpose(0, 2), dim);
      check<Max>(plain.permute({1, 2, 0}), dim);
    }
  }
}

TEST_CASE("the first NaN is the extreme element") {
  const float nan = std::nanf("");
  const Tensor<float, 1> x({5}, {1, nan, -7, nan, 9});
  float value = 0;
  index_t index = 0;
  arg_reduce_dim<Max>(On<Host>{}, read(x), 0, 0, &value, &index);
  CHECK(index == 1);
  CHECK(std::isnan(value));
  arg_reduce_dim<Min>(On<Host>{}, read(x), 0, 0, &value, &index);
  CHECK(index == 1);
}

TEST_CASE("the first NaN of a column is the extreme element, and those of other columns are not") {
  const Tensor<double, 2> x({130, 300});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i % 41);
  x(70, 5) = x(100, 5) = std::nan("");
  x(129, 299) = x(64, 0) = 1000;
  std::vector<double> values(300);
  std::vector<index_t> indices(300);
  arg_reduce_dim<Max>(On<Host>{}, read(x), 0, 0, values.data(), indices.data());
  CHECK(indices[5] == 70);
  CHECK(std::isnan(values[5]));
  CHECK(indices[299] == 129);
  CHECK(values[299] == 1000);
  CHECK(indices[0] == 64);
}

TEST_CASE_TEMPLATE("extremes of short rows, of which some hold NaN and infinities", T, float,
                   double) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (const index_t n : {1, 2, 7, 31})
    for (const index_t m : {7, 8, 16, 50}) {
      const Tensor<T, 2> x({m, n});
      for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(i * 7 % 5);
      x(3, n / 2) = nan;
      x(5, 0) = inf, x(5, n - 1) = -inf;
      std::vector<T> values(static_cast<std::size_t>(m)), maxima(values);
      std::vector<index_t> indices(values.size());
      arg_reduce_dim<Max>(On<Host>{}, read(x), 1, 0, values.data(), indices.data());
      reduce_dims<Max>(On<Host>{}, read(x), 2u,
                       Strided<T>{maxima.data(), Shape::filled(1, m), Shape::filled(1, 1)});
      for (index_t i = 0; i < m; ++i) {
        index_t best = 0;
        for (index_t j = 1; j < n; ++j)
          if (x(i, best) < x(i, j)) best = j;
        if (i == 3) best = n / 2;
        CHECK(indices[std::size_t(i)] == best);
        for (const T& value : {values[std::size_t(i)], maxima[std::size_t(i)]})
          CHECK((i == 3 ? std::isnan(value) : value == x(i, best)));
      }
    }
}

TEST_CASE("the extreme of no elements is the identity, at no index") {
  const Tensor<float, 2> x({0, 2});
  float values[2];
  index_t indices[2];
  arg_reduce_dim<Min>(On<Host>{}, read(x), 0, 0, values, indices);
  CHECK(values[1] == std::numeric_limits<float>::infinity());
  CHECK(indices[1] == no_index);
}
