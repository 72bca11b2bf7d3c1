// Passes over blocks of exact sums, with vectors of every width that this processor has: the
// results are compared with sums of 128-bit fixed-point numbers.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/host/exact_block.hpp>

using namespace cleave;
using namespace cleave::kernels::detail;

namespace {

__extension__ typedef __int128 Fixed;

constexpr index_t block_size = 1024;
constexpr int last_place = 100;  // numbers are multiples of 2^-100

/// The sizes of vectors in bytes.
std::vector<int> all_widths() {
  std::vector<int> widths{16};
  for (const int bytes : {32, 64})
    if (bytes <= widest_vectors()) widths.push_back(bytes);
  return widths;
}

Fixed fixed(double x) {
  int exponent = 0;
  const auto digits = Fixed(std::ldexp(std::frexp(x, &exponent), 53));
  const int shift = exponent - 53 + last_place;
  return shift >= 0 ? digits << shift : digits >> -shift;  // drops zeros only
}

/// Numbers of magnitudes from 2^-range to 1, of both signs, and zeros.
template <class T>
std::vector<T> spread_numbers(int range, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> fraction(0.5, 1), exponent(-range, 0);
  std::vector<T> x;
  for (index_t i = 0; i < block_size; ++i) {
    const double value = std::ldexp(fraction(random), int(exponent(random)));
    x.push_back(i % 97 == 5 ? T(0) : T(random() % 2 == 0 ? value : -value));
  }
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("a block of numbers is summed without rounding, by vectors of every width", T,
                   float, double) {
  constexpr int range = block_range<false, 1, T>;
  for (const int bytes : all_widths()) {
    CAPTURE(bytes);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      const std::vector<T> x = spread_numbers<T>(range - 1, seed);
      Fixed expected = 0;
      double largest = 0;
      for (const T value : x) {
        expected += fixed(double(value));
        largest = std::max(largest, std::fabs(double(value)));
      }
      BlockSum sum;
      split_block<false, 1>(x.data(), x.data(), block_size, 0, sum, bytes);
      CHECK(sum.complete);
      CHECK(sum.largest == largest);
      CHECK((fixed(sum.parts[0]) + fixed(sum.parts[1]) == expected));
    }
    std::vector<T> wide = spread_numbers<T>(20, 1);
    for (const std::size_t at : {0u, 1u, 7u, 15u, 500u, 1023u}) {  // in any lane
      const T before = std::exchange(wide[at], T(std::ldexp(0.75, -range)));
      BlockSum sum;
      split_block<false, 1>(wide.data(), wide.data(), block_size, 0, sum, bytes);
      CHECK_FALSE(sum.complete);
      wide[at] = T(std::nan(""));
      split_block<false, 1>(wide.data(), wide.data(), block_size, 0, sum, bytes);
      CHECK(std::isnan(sum.parts[0] + sum.parts[1]));
      wide[at] = 8;
      split_block<false, 1>(wide.data(), wide.data(), block_size, 0, sum, bytes);
      CHECK_FALSE(sum.complete);
      CHECK(sum.largest == 8);
      wide[at] = before;
    }
    const std::vector<T> zeros(std::size_t(block_size), T(0));
    BlockSum sum;
    split_block<false, 1>(zeros.data(), zeros.data(), block_size, 0, sum, bytes);
    CHECK(sum.complete);
    CHECK(sum.parts[0] + sum.parts[1] == 0);
  }
}

TEST_CASE("floats in a narrow range are summed without splitting them, by vectors of every width") {
  constexpr int range = block_range<false, 0, float>;
  for (const int bytes : all_widths()) {
    CAPTURE(bytes);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      std::vector<float> x = spread_numbers<float>(range - 1, seed);
      Fixed expected = 0;
      for (const float value : x) expected += fixed(double(value));
      BlockSum sum;
      split_block<false, 0>(x.data(), x.data(), block_size, 7, sum, bytes);
      CHECK(sum.complete);
      CHECK((fixed(sum.parts[1]) == expected));
      x[seed * 51] = std::ldexp(0.75f, -range);
      split_block<false, 0>(x.data(), x.data(), block_size, 0, sum, bytes);
      CHECK_FALSE(sum.complete);
    }
  }
}

TEST_CASE_TEMPLATE("the largest remainders and the smallest number of a block add up exactly", T,
                   float, double) {
  const auto check = [](auto splits, T largest, T smallest) {
    std::vector<T> x(std::size_t(block_size), largest);
    x.back() = smallest;
    const Fixed expected = (block_size - 1) * fixed(double(largest)) + fixed(double(smallest));
    for (const int bytes : all_widths()) {
      BlockSum sum;
      split_block<false, splits>(x.data(), x.data(), block_size, 0, sum, bytes);
      CHECK(sum.complete);
      CHECK((fixed(sum.parts[0]) + fixed(sum.parts[1]) == expected));
    }
  };
  const T more = T(1) + std::numeric_limits<T>::epsilon();  // with all digits
  constexpr int range = block_range<false, 1, T>;
  const double below = std::ldexp(1, -43) - std::ldexp(1, std::is_same_v<T, float> ? -67 : -86);
  check(std::integral_constant<int, 1>{},
        T(std::is_same_v<T, float> ? below : std::ldexp(1, -34) + below),
        T(std::ldexp(more, -range)));
  if constexpr (std::is_same_v<T, float>)
    check(std::integral_constant<int, 0>{}, std::nextafter(1.0f, 0.0f),
          std::ldexp(more, -block_range<false, 0, T>));
}

TEST_CASE("products of a block are split with their rounding errors, by vectors of every width") {
  const auto found = [](const BlockSum& sum) {
    Fixed total = 0;
    for (const double part : sum.parts) total += fixed(part);
    return total;
  };
  for (const int bytes : all_widths()) {
    CAPTURE(bytes);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      std::vector<double> a = spread_numbers<double>(6, seed), b = spread_numbers<double>(6, ~seed);
      const std::vector<float> c(a.begin(), a.end()), d(b.begin(), b.end());
      for (double& value : a) value = double(float(value)) * (1 + std::ldexp(1.0, -30));
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = double(d[i]) + (b[i] == 0 ? 1 : 0);
      for (double& value : a) value += value == 0 ? 1 : 0;
      Fixed expected = 0, expected_floats = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double product = a[i] * b[i];
        expected += fixed(product) + fixed(std::fma(a[i], b[i], -product));
        expected_floats += fixed(double(c[i]) * double(d[i]));
      }
      BlockSum sum;
      split_block<true, 1>(a.data(), b.data(), block_size, 2, sum, bytes);
      CHECK(sum.complete);
      CHECK_FALSE(sum.has_zero);
      CHECK((found(sum) == expected));
      split_block<true, 1>(c.data(), d.data(), block_size, 2, sum, bytes);
      CHECK(sum.complete);
      CHECK((found(sum) == expected_floats));
      a[seed * 51] = 0;
      split_block<true, 1>(a.data(), b.data(), block_size, 2, sum, bytes);
      CHECK(sum.complete);
      CHECK(sum.has_zero);
      a[seed * 51] = std::ldexp(0.75, 2 - block_range<true, 1, double>), b[seed * 51] = 1;
      split_block<true, 1>(a.data(), b.data(), block_size, 2, sum, bytes);
      CHECK_FALSE(sum.complete);
    }
  }
}
