#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/class_losses_cuda.hpp>
#include <cleave/kernels/cuda/running_sums_cuda.hpp>
#include <cleave/kernels/cuda/whole_rows_cuda.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace whole_rows_test {

/// Rows of one array, in double.
using Rows = std::vector<std::vector<double>>;

template <class T>
Rows rows_of(const HostArray<T>& all, const Shape& extents, int dim) {
  index_t inner = 1;
  for (int d = dim + 1; d < extents.dims; ++d) inner *= extents[d];
  const index_t n = extents[dim], count = n == 0 ? 0 : all.size / n;
  const std::vector<double> zeros(static_cast<std::size_t>(n));
  Rows rows(static_cast<std::size_t>(count), zeros);
  for (index_t r = 0; r < count; ++r)
    for (index_t i = 0; i < n; ++i)
      rows[std::size_t(r)][std::size_t(i)] = double(all[(r / inner * n + i) * inner + r % inner]);
  return rows;
}
template <class T>
Rows rows_of(const Placed<T>& x, int dim) {
  return rows_of(x.values(), x.place().extents, dim);
}

/// An expected number, and the size of what it is computed from.
struct Expected {
  double value, size;
};

/// Whether a number is near: by rounding relative to that size.
template <class T>
bool is_near(const T& found, const Expected& expected) {
  const double epsilon = std::is_same_v<T, double>  ? 1e-13
                         : std::is_same_v<T, float> ? 1e-5
                         : std::is_same_v<T, half>  ? 2e-3
                                                    : 1e-2;
  if (std::isnan(expected.value)) return found != found;
  const double least = std::is_same_v<T, half> ? 1e-7 : 0;  // half the smallest number, and more
  return std::abs(double(found) - expected.value) <= epsilon * expected.size + least;
}

/// The number of wrong elements, where `expected` and `sizes` are rows along `dim`.
template <class T>
index_t wrong_rows(const Placed<T>& found, const Rows& expected, const Rows& sizes, int dim) {
  const Shape& extents = found.place().extents;
  index_t inner = 1;
  for (int d = dim + 1; d < extents.dims; ++d) inner *= extents[d];
  const index_t n = extents[dim];
  HostArray<Expected> all(extents.product());
  for (std::size_t r = 0; r < expected.size(); ++r)
    for (index_t i = 0; i < n; ++i)
      all[(index_t(r) / inner * n + i) * inner + index_t(r) % inner] = {expected[r][std::size_t(i)],
                                                                        sizes[r][std::size_t(i)]};
  return found.wrong(all, is_near<T>);
}

/// The magnitudes of numbers plus a constant.
inline Rows sizes_of(Rows rows, double more) {
  for (auto& row : rows)
    for (double& x : row) x = std::abs(x) + more;
  return rows;
}

inline Rows softmax(Rows rows, bool logarithm) {
  for (auto& row : rows) {
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (const double x : row) most = std::max(most, x);
    for (const double x : row) total += std::exp(x - most);
    for (double& x : row) x = logarithm ? x - most - std::log(total) : std::exp(x - most) / total;
  }
  return rows;
}

/// Every placement of arrays whose rows have n elements, dense, with gaps, and transposed.
template <class F>
void each_place(index_t n, const F& f) {
  const index_t few = n > 100 ? 2 : 3;
  f(Place::of(shape({few, 2, n})), 2);                           // dense
  f(Place::of(shape({few, 2, n}), {}, {0, 0, 3}, 1), 2);         // unaligned rows
  f(Place::of(shape({few, n, 5}), {}, {0, 0, 1}, 2), 1);         // across contiguous memory
  f(Place::of(shape({few, 3, n}), {2, 1, 0}, {0, 0, 0}, 0), 2);  // the same, transposed
}

}  // namespace whole_rows_test

using namespace whole_rows_test;

TEST_CASE_TEMPLATE("softmax of whole rows and its gradient, whatever their length and layout", T,
                   float, double, half, bfloat16) {
  for (const index_t n : {0, 1, 31, 32, 33, 1023, 5000}) {
    each_place(n, [](const Place& place, int dim) {
      CAPTURE(to_string(place.extents));
      const Placed<T> x(place, 3), g(place, 11);
      const auto check = [&](auto logarithm) {
        constexpr bool is_log = decltype(logarithm)::value;
        const Placed<T> y(place), dx(place);
        softmax_rows(On<Cuda>{}, logarithm, x.read(), dim, y.write());
        const Rows y_rows = softmax(rows_of(x, dim), is_log);
        CHECK(wrong_rows(y, y_rows, sizes_of(y_rows, is_log ? 20 : 0), dim) == 0);

        softmax_slopes(On<Cuda>{}, logarithm, g.read(), y.read(), dim, dx.write());
        const Rows slopes = rows_of(g, dim), given = rows_of(y.result(), place.extents, dim);
        Rows expected = slopes, sizes = slopes;
        for (std::size_t r = 0; r < slopes.size(); ++r) {
          double total = 0, size = 0;
          for (std::size_t i = 0; i < slopes[r].size(); ++i) {
            const double term = slopes[r][i] * (is_log ? 1 : given[r][i]);
            total += term, size += std::abs(term);
          }
          for (std::size_t i = 0; i < slopes[r].size(); ++i) {
            const double factor = is_log ? std::exp(given[r][i]) : given[r][i];
            const double own = slopes[r][i] * (is_log ? 1 : factor);
            expected[r][i] = own - factor * total;
            sizes[r][i] = std::abs(own) + factor * size;
          }
        }
        CHECK(wrong_rows(dx, expected, sizes, dim) == 0);
      };
      check(std::false_type{});
      check(std::true_type{});
    });
  }
}

TEST_CASE("softmax of rows with infinite elements") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const index_t n : {7, 3000}) {
    const Place place = Place::of(shape({3, n}));
    HostArray<double> elements(place.size);
    for (index_t i = 0; i < place.size; ++i) elements[i] = i % 3 == 0 ? -infinity : double(i % 5);
    for (index_t i = 0; i < n; ++i) elements[n + i] = -infinity;
    for (index_t i = n / 2; i < n; ++i) elements[2 * n + i] = -infinity;
    const Placed<double> x(place, std::move(elements)), y(place);
    softmax_rows(On<Cuda>{}, std::false_type{}, x.read(), 1, y.write());
    const Rows expected = softmax(rows_of(x, 1), false);
    CHECK(wrong_rows(y, expected, expected, 1) == 0);
    CHECK(y.result()[0] == 0);
    CHECK(std::isnan(y.result()[n]));  // 0 / 0, as on the host
  }
}

TEST_CASE_TEMPLATE("layer norm and RMS norm of whole rows and their gradients", T, float, double,
                   half, bfloat16) {
  constexpr double epsilon = 0.25;
  for (const index_t n : {0, 1, 31, 32, 33, 1023, 5000}) {
    each_place(n, [&](const Place& place, int dim) {
      if (dim != place.extents.dims - 1) return;
      CAPTURE(to_string(place.extents));
      const Placed<T> x(place, 3), g(place, 11);
      const Placed<T> weight(Place::of(shape({n}), {}, {1}, 1), 5), bias(Place::of(shape({n})), 7);
      const HostArray<T> w = weight.values(), b = bias.values();
      const auto check = [&](auto centers, const auto&... affine) {
        constexpr bool is_centered = decltype(centers)::value;
        constexpr int count = sizeof...(affine);
        const Placed<T> y(place), dx(place);
        norm_rows(On<Cuda>{}, centers, epsilon, y.write(), x.read(), affine.read()...);
        Rows expected = rows_of(x, dim), slopes = rows_of(g, dim);
        Rows sizes = slopes;
        for (std::size_t r = 0; r < expected.size(); ++r) {
          auto& row = expected[r];
          double largest = 0, mean = 0, square = 0, h_mean = 0, hz_mean = 0;
          for (const double a : row) mean += a / double(n);
          if (!is_centered) mean = 0;
          for (const double a : row) square += (a - mean) * (a - mean) / double(n);
          const double deviation = std::sqrt(square + epsilon);
          for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = (row[i] - mean) / deviation;
            if (count > 0) slopes[r][i] *= double(w[index_t(i)]);
            h_mean += slopes[r][i] / double(n);
            hz_mean += slopes[r][i] * row[i] / double(n);
            largest = std::max(largest, std::abs(slopes[r][i]));
          }
          if (!is_centered) h_mean = 0;
          for (std::size_t i = 0; i < row.size(); ++i) {
            sizes[r][i] = largest * (1 + std::abs(row[i])) / deviation;
            slopes[r][i] = (slopes[r][i] - h_mean - row[i] * hz_mean) / deviation;
            if (count > 0) row[i] *= double(w[index_t(i)]);
            if (count > 1) row[i] += double(b[index_t(i)]);
          }
        }
        CHECK(wrong_rows(y, expected, sizes_of(expected, 20), dim) == 0);
        if constexpr (count < 2) {
          norm_slopes(On<Cuda>{}, centers, epsilon, dx.write(), g.read(), x.read(),
                      affine.read()...);
          CHECK(wrong_rows(dx, slopes, sizes, dim) == 0);
        }
      };
      check(std::true_type{});
      check(std::false_type{}, weight);
      check(std::true_type{}, weight);
      check(std::true_type{}, weight, bias);
    });
  }
}

TEST_CASE_TEMPLATE("cross-entropy losses of whole rows and their gradients", T, float, double, half,
                   bfloat16) {
  for (const index_t n : {1, 31, 32, 33, 1023, 5000})
    for (const double smoothing : {0.0, 0.25})
      for (const bool transposed : {false, true}) {
        CAPTURE(n);
        constexpr index_t rows = 9, ignored = -3;
        const std::vector<int> order = transposed ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
        const Place place = Place::of(shape({rows, n}), order, {0, 3}, 1);
        const Placed<T> x(place, 3), dx(place), losses(Place::of(shape({rows}), {}, {2}, 1));
        const Placed<T> g(Place::of(shape({rows})), 17);
        HostArray<int> index(rows + 12);
        for (index_t r = 0; r < rows; ++r) index[r] = r == 4 ? int(ignored) : int(r * 131 % n);
        const Placed<int> classes(Place::of(shape({rows})), std::move(index));
        class_losses(On<Cuda>{}, x.read(), classes.read(), ignored, smoothing, losses.write());
        class_slopes(On<Cuda>{}, g.read(), x.read(), classes.read(), ignored, smoothing,
                     dx.write());

        const HostArray<int> own = classes.values();
        const HostArray<T> factors = g.values();
        const Rows logs = softmax(rows_of(x, 1), true);
        HostArray<Expected> expected(rows);
        Rows slopes = logs, sizes = logs;
        for (index_t r = 0; r < rows; ++r) {
          const auto& row = logs[std::size_t(r)];
          expected[r] = {0, 20};
          for (index_t i = 0; i < n; ++i) {
            const double target = smoothing / double(n) + (i == own[r] ? 1 - smoothing : 0);
            const bool counts = own[r] != ignored;
            if (counts) expected[r].value -= target * row[std::size_t(i)];
            const double y = std::exp(row[std::size_t(i)]), factor = double(factors[r]);
            slopes[std::size_t(r)][std::size_t(i)] = counts ? (y - target) * factor : 0;
            sizes[std::size_t(r)][std::size_t(i)] = (y + target) * std::abs(factor);
          }
        }
        CHECK(losses.wrong(expected, is_near<T>) == 0);
        CHECK(wrong_rows(dx, slopes, sizes, 1) == 0);
      }
}

TEST_CASE("a class out of range has no loss and is reported") {
  for (const index_t n : {0, 4}) {
    const Placed<float> x(Place::of(shape({3, n}))), losses(Place::of(shape({3})), 5);
    HostArray<index_t> index(12);
    index[1] = 4;
    if (n == 0) index[0] = index[2] = -1;  // ignored
    const Placed<index_t> classes(Place::of(shape({3})), std::move(index));
    class_losses(On<Cuda>{}, x.read(), classes.read(), n == 0 ? -1 : none_ignored, 0,
                 losses.write());
    CHECK(reported() == "cross_entropy: index 4 is not in [0, " + std::to_string(n) + ")");
    CHECK(losses.result()[1] == 0);
  }
}

TEST_CASE_TEMPLATE("running sums of lines, whole and in chunks, in both directions", T, float, half,
                   std::complex<double>, std::uint8_t, bool) {
  using cuda::detail::ChunkLimits;
  using R = std::conditional_t<std::is_same_v<T, bool>, index_t, T>;
  using A = std::conditional_t<is_complex<T>, std::complex<double>, double>;
  for (const index_t n : {0, 1, 31, 32, 33, 1023, 5000}) {
    each_place(n, [](const Place& place, int dim) {
      CAPTURE(to_string(place.extents));
      const Shape& extents = place.extents;
      const Placed<T> x(place, 3);
      const HostArray<T> values = x.values();
      index_t inner = 1;
      for (int d = dim + 1; d < extents.dims; ++d) inner *= extents[d];
      for (const bool reversed : {false, true}) {
        const Placed<R> out(place), chunked(place);
        running_sums(On<Cuda>{}, x.read(), dim, reversed, out.write());
        running_sums(On<Cuda>{}, x.read(), dim, reversed, chunked.write(), ChunkLimits{16, 64, 2});
        HostArray<A> expected(values.size);
        HostArray<double> sizes(values.size);
        for (index_t k = 0; k < values.size; ++k) {
          const index_t at = reversed ? values.size - 1 - k : k;
          const index_t i = at / inner % extents[dim], last = reversed ? extents[dim] - 1 : 0;
          const index_t before = at + (reversed ? inner : -inner);
          A own;
          if constexpr (is_complex<T>) own = values[at];
          else own = A(double(values[at]));
          expected[at] = own + (i == last ? A(0) : expected[before]);
          sizes[at] = std::abs(own) + (i == last ? 0 : sizes[before]);
        }
        const auto close = [&](const R& found, index_t k) {
          if constexpr (is_complex<T>) return std::abs(found - expected[k]) <= 1e-13 * sizes[k];
          else if constexpr (std::is_integral_v<R>) return found == R(index_t(expected[k]));
          else return is_near(found, {expected[k], std::abs(expected[k]) + 1e-4 * sizes[k]});
        };
        HostArray<index_t> all(values.size);
        for (index_t k = 0; k < values.size; ++k) all[k] = k;
        CHECK(out.wrong(all, close) == 0);
        CHECK(chunked.wrong(all, close) == 0);
      }
    });
  }
}

TEST_CASE("a number that is not finite spreads to later elements only, also across chunks") {
  constexpr index_t n = 500, at = 250;
  HostArray<float> elements(n + 9);
  for (index_t i = 0; i < n; ++i) elements[i] = 1;
  elements[at] = std::numeric_limits<float>::infinity();
  const Placed<float> x(Place::of(shape({n})), std::move(elements));
  running_sums(On<Cuda>{}, x.read(), 0, false, x.write(), {16, 64, 2});  // in place
  const HostArray<float> sums = x.result();
  index_t wrong = 0;
  for (index_t i = 0; i < n; ++i) wrong += i < at ? sums[i] != float(i + 1) : !std::isinf(sums[i]);
  CHECK(wrong == 0);
}
