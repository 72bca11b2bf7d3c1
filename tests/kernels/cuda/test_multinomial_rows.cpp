#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/cuda/multinomial_rows_cuda.hpp>
#include <cleave/kernels/host/multinomial_rows.hpp>

#include "placed.hpp"

using namespace cleave;
using namespace cleave::kernels;
using namespace cleave::testing;

namespace multinomial_rows_test {

constexpr RandomState state{2031, 5};
constexpr index_t first_row = 3;  // the global index of row 0

/// Weights, of which every seventh is zero.
template <class T, class F>
Placed<T> weights_at(const Place& place, const F& f) {
  HostArray<T> buffer(place.size);
  for (index_t i = 0; i < place.size; ++i) buffer[i] = T(float(i % 7 == 3 ? 0 : f(i)));
  return {place, std::move(buffer)};
}

/// The number of draws on the GPU that differ from `expected`, [rows, draws].
template <class T>
index_t wrong_draws(const Placed<T>& weights, index_t draws, bool replacement,
                    const HostArray<index_t>& expected) {
  const index_t rows = weights.place().extents[0];
  const Placed<index_t> out(Place::of(shape({rows, draws}), {1, 0}, {0, 2}, 1));
  multinomial_rows(On<Cuda>{}, weights.read(), first_row, state, replacement, out.write());
  return out.wrong(expected);
}

/// The draws of the host.
template <class T>
HostArray<index_t> on_host(const Placed<T>& weights, index_t draws, bool replacement) {
  const Shape& extents = weights.place().extents;
  const HostArray<T> values = weights.values();
  HostArray<index_t> drawn(extents[0] * draws);
  const auto wrong = multinomial_rows(
      On<Host>{}, Strided<const T>{values.elements.get(), extents, row_major_strides(extents)},
      first_row, state, replacement,
      Strided<index_t>{drawn.elements.get(), shape({extents[0], draws}), shape({draws, 1})});
  REQUIRE(!wrong);
  return drawn;
}

/// The uniform number of element i of a draw.
double uniform(index_t i) {
  const auto bits = state.bits(i);
  return std::ldexp(double((std::uint64_t(bits[0]) << 32 | bits[1]) >> 11), -53);
}

}  // namespace multinomial_rows_test

using namespace multinomial_rows_test;

TEST_CASE_TEMPLATE("categories of weights whose sums are exact are those of naive loops", T, float,
                   half) {
  for (const index_t n : {1, 31, 32, 33, 1024, 1025, 2100}) {
    CAPTURE(n);
    const Placed<T> weights =
        weights_at<T>(Place::of(shape({2, n})), [](index_t i) { return double((i * 31 + 1) % 5); });
    const HostArray<T> values = weights.values();
    constexpr index_t draws = 50;
    HostArray<index_t> with(2 * draws);
    index_t positive = n;
    for (index_t row = 0; row < 2; ++row) {
      const T* const w = values.elements.get() + row * n;
      double total = 0;
      for (index_t j = 0; j < n; ++j) total += double(w[j]);
      for (index_t k = 0; k < draws; ++k) {
        const double at = uniform((first_row + row) * draws + k) * total;
        index_t category = 0;
        for (double sum = double(w[0]); !(at < sum); sum += double(w[category])) ++category;
        with[row * draws + k] = category;
      }
      positive = std::min<index_t>(positive, n - std::count(w, w + n, T(0.0f)));
    }
    CHECK(wrong_draws(weights, draws, true, with) == 0);

    const index_t few = std::min<index_t>(positive, 20);
    HostArray<index_t> without(2 * few);
    for (index_t row = 0; row < 2; ++row) {
      std::vector<std::pair<double, index_t>> times;
      for (index_t j = 0; j < n; ++j) {
        const double w = double(values[row * n + j]);
        const double u = uniform((first_row + row) * n + j);
        if (w > 0) times.emplace_back(-std::log1p(-u) / w, j);
      }
      std::sort(times.begin(), times.end());
      for (index_t k = 0; k < few; ++k) without[row * few + k] = times[std::size_t(k)].second;
    }
    CHECK(wrong_draws(weights, few, false, without) == 0);
  }
}

TEST_CASE_TEMPLATE("categories are the same as on the host, whatever the weights and their layout",
                   T, float, double, half, bfloat16) {
  const auto any = [](index_t i) { return 1e-3 + std::abs(std::sin(double(i) * 1.7)); };
  for (const index_t n : {5, 40, 1030, 33000}) {
    for (const Place& place : {Place::of(shape({3, n})), Place::of(shape({3, n}), {}, {0, 3}, 1),
                               Place::of(shape({3, n}), {1, 0}, {0, 1}, 2)}) {
      if (n > 2000 && place.first == 1) continue;
      CAPTURE(n);
      const Placed<T> weights = weights_at<T>(place, any);
      CHECK(wrong_draws(weights, 60, true, on_host(weights, 60, true)) == 0);
      CHECK(wrong_draws(weights, 4, false, on_host(weights, 4, false)) == 0);
    }
  }
}

TEST_CASE("sums are those of the host to the last bit: draws next to a boundary are the same") {
  // The first weight of each row is the largest that the row's draw does not select, or the next.
  constexpr index_t rows = 40, n = 1100;
  const Place place = Place::of(shape({rows, n}));
  HostArray<double> buffer(place.size);
  for (index_t i = 0; i < rows * n; ++i) buffer[i] = 1e-3 + std::abs(std::sin(double(i) * 1.7));
  for (index_t row = 0; row < rows; ++row) {
    double* const w = buffer.elements.get() + row * n;
    auto below = std::bit_cast<std::uint64_t>(1e-300), above = std::bit_cast<std::uint64_t>(1e300);
    while (above - below > 1) {
      const std::uint64_t middle = below + (above - below) / 2;
      w[0] = std::bit_cast<double>(middle);
      index_t category = -1;
      multinomial_rows(On<Host>{}, Strided<const double>{w, shape({1, n}), shape({n, 1})},
                       first_row + row, state, true,
                       Strided<index_t>{&category, shape({1, 1}), shape({1, 1})});
      (category == 0 ? above : below) = middle;
    }
    w[0] = std::bit_cast<double>(row % 2 == 0 ? below : above);
  }
  const Placed<double> weights(place, std::move(buffer));
  const HostArray<index_t> expected = on_host(weights, 1, true);
  for (index_t row = 0; row < rows; ++row) CHECK((expected[row] == 0) == (row % 2 == 1));
  CHECK(wrong_draws(weights, 1, true, expected) == 0);
}

TEST_CASE("sums that overflow, and draws that rounding moves to the end, are those of the host") {
  const Place place = Place::of(shape({2, 70}));
  HostArray<double> buffer(place.size);
  for (index_t i = 0; i < place.size; ++i) buffer[i] = i < 70 ? 1e308 : i % 3 == 0 ? 5e-324 : 0;
  const Placed<double> weights(place, std::move(buffer));
  for (const bool replacement : {true, false})
    CHECK(wrong_draws(weights, 20, replacement, on_host(weights, 20, replacement)) == 0);
}

TEST_CASE("the next wait names a row of weights from which nothing can be drawn") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Placed<index_t> out(Place::of(shape({3, 2})));
  for (const bool replacement : {true, false})
    for (const double wrong : {nan, infinity, -1.0, 0.0}) {
      CAPTURE(wrong);
      const Place place = Place::of(shape({3, 40}));
      HostArray<double> buffer(place.size);
      for (index_t i = 0; i < 120; ++i) buffer[i] = i / 40 == 1 ? 0 : 1;
      buffer[75] = wrong;
      const Placed<double> weights(place, std::move(buffer));
      multinomial_rows(On<Cuda>{}, weights.read(), first_row, state, replacement, out.write());
      CHECK(reported() ==
            std::string("multinomial: row 4: weights must be finite and not "
                        "negative, and ") +
                (replacement ? "one of them positive" : "as many positive as are drawn"));
      CHECK(reported() == "");
    }
  const Placed<double> none(Place::of(shape({3, 0})));
  multinomial_rows(On<Cuda>{}, none.read(), 0, state, true, out.write());
  CHECK(contains(reported(), ": weights must be"));
  multinomial_rows(On<Cuda>{}, none.read(), 0, state, true,
                   Placed<index_t>(Place::of(shape({3, 0}))).write());
  CHECK(reported() == "");
}
