// Passes over blocks of exact sums, with vectors of every width that this processor has: the
// results are compared with sums of 128-bit fixed-point numbers.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
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

/// The passes for one vector width.
struct Width {
  const char* name;
  const BlockPasses* passes;
};

std::vector<Width> all_widths() {
  std::vector<Width> widths{{"any", &AnyProcessor::passes}};
#if CLEAVE_EXACT_AVX
  if (has_avx2()) widths.push_back({"AVX2", &WithAvx2::passes});
  if (has_avx512()) widths.push_back({"AVX-512", &WithAvx512::passes});
#endif
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

TEST_CASE("a block of doubles is split without rounding, by vectors of every width") {
  for (const Width& width : all_widths()) {
    CAPTURE(width.name);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      const std::vector<double> x = spread_numbers<double>(20, seed);
      Fixed expected = 0;
      double largest = 0;
      for (const double value : x) {
        expected += fixed(value);
        largest = std::max(largest, std::fabs(value));
      }
      BlockSum sum;
      width.passes->split(x.data(), block_size, 0, sum);
      CHECK(sum.complete);
      CHECK(sum.largest == largest);
      CHECK((fixed(sum.high) + fixed(sum.low) == expected));
    }
    std::vector<double> wide = spread_numbers<double>(20, 1);
    for (const std::size_t at : {0u, 1u, 7u, 500u, 1023u}) {  // in any lane
      const double before = std::exchange(wide[at], std::ldexp(1.0, -90));
      BlockSum sum;
      width.passes->split(wide.data(), block_size, 0, sum);
      CHECK_FALSE(sum.complete);
      wide[at] = std::nan("");
      width.passes->split(wide.data(), block_size, 0, sum);
      CHECK(std::isnan(sum.high));
      wide[at] = 8;
      width.passes->split(wide.data(), block_size, 0, sum);
      CHECK(sum.largest == 8);
      wide[at] = before;
    }
  }
}

TEST_CASE("a block of floats is summed as doubles where its exponents allow, in any lane") {
  for (const Width& width : all_widths()) {
    CAPTURE(width.name);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      const std::vector<float> x = spread_numbers<float>(16, seed);
      Fixed expected = 0;
      for (const float value : x) expected += fixed(value);
      double sum = 0;
      int highest = 0;  // a wrong guess, to be corrected
      CHECK(width.passes->sum(x.data(), block_size, highest, sum));
      CHECK((fixed(sum) == expected));
      CHECK(width.passes->sum(x.data(), block_size, highest, sum));
      CHECK((fixed(sum) == expected));
    }
    std::vector<float> wide = spread_numbers<float>(10, 1);
    for (const std::size_t at : {0u, 1u, 7u, 15u, 500u, 1023u})
      for (const float beyond : {std::ldexp(1.0f, -30), std::ldexp(1.0f, 30), std::nanf("")}) {
        const float before = std::exchange(wide[at], beyond);
        int highest = 126;
        double sum = 0;
        CHECK_FALSE(width.passes->sum(wide.data(), block_size, highest, sum));
        wide[at] = before;
      }
    const std::vector<float> zeros(std::size_t(block_size), 0.0f);
    int highest = 126;
    double sum = 1;
    CHECK(width.passes->sum(zeros.data(), block_size, highest, sum));
    CHECK(sum == 0);
  }
}

TEST_CASE("products of a block are split with their rounding errors, by vectors of every width") {
  for (const Width& width : all_widths()) {
    CAPTURE(width.name);
    for (unsigned seed = 1; seed <= 20; ++seed) {
      std::vector<double> a = spread_numbers<double>(6, seed), b = spread_numbers<double>(6, ~seed);
      std::vector<float> c(a.begin(), a.end()), d(b.begin(), b.end());
      for (double& value : a) value = double(float(value)) * (1 + std::ldexp(1.0, -30));
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = double(d[i]) + (b[i] == 0 ? 1 : 0);
      for (double& value : a) value += value == 0 ? 1 : 0;
      Fixed expected = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double product = a[i] * b[i];
        expected += fixed(product) + fixed(std::fma(a[i], b[i], -product));
      }
      for (const auto& split : width.passes->products) {
        ProductSum sum;
        split(a.data(), b.data(), block_size, 2, sum);
        CHECK(sum.complete);
        Fixed found = 0;
        const int parts = &split == &width.passes->products[0] ? 3 : 4;
        for (int k = 0; k < parts; ++k) found += fixed(sum.parts[k]);
        CHECK((found == expected));
      }
      std::vector<double> products(std::size_t(block_size), 0.0);
      width.passes->multiply(c.data(), d.data(), block_size, products.data());
      bool are_exact = true;
      for (std::size_t i = 0; i < c.size(); ++i)
        are_exact = are_exact && products[i] == double(c[i]) * double(d[i]);
      CHECK(are_exact);
    }
  }
}
