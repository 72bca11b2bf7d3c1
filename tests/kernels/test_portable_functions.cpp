// Functions with the same results everywhere, compared with the math library in a wider type.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/core/random_state.hpp>
#include <cleave/kernels/distributions.hpp>

using namespace cleave;
using namespace cleave::kernels;

namespace {

constexpr double half_ulp = 0x1p-53;

double uniform_number(index_t i) {
  const auto bits = RandomState{1, 2}.bits(i);
  return unit_interval<double>(bits[0], bits[1]);
}

}  // namespace

TEST_CASE("logarithms are right to a unit in the last place or two") {
  CHECK(portable_log(1) == 0);
  double worst = 0;
  for (index_t i = 0; i < 20000; ++i) {
    const double x = std::ldexp(1 - uniform_number(i), int(i % 1000) - 900);
    const long double exact = std::log(static_cast<long double>(x));
    worst = std::max(worst, double(std::abs((portable_log(x) - exact) / exact)));
  }
  CHECK(worst < 4 * half_ulp);
}

TEST_CASE("sines and cosines of turns are right to half a unit of 1, exact at quarters") {
  double worst = 0;
  for (index_t i = 0; i < 20000; ++i) {
    const double t = uniform_number(i);
    const long double angle = 8 * std::atan(1.0L) * t;
    const CosineSine at = portable_turn(t);
    worst = std::max({worst, double(std::abs(at.cosine - std::cos(angle))),
                      double(std::abs(at.sine - std::sin(angle)))});
  }
  CHECK(worst < 2 * half_ulp);
  const CosineSine quarter = portable_turn(0.25), half = portable_turn(0.5);
  CHECK(quarter.cosine == 0);
  CHECK(quarter.sine == 1);
  CHECK(half.cosine == -1);
  CHECK(portable_turn(1 - 0x1p-53).cosine == 1);
}

TEST_CASE("quantiles and probabilities of the normal distribution invert each other and erfc") {
  double of_quantiles = 0, of_probabilities = 0;
  const auto exact = [](double z) {
    return std::erfc(-static_cast<long double>(z) / std::sqrt(2.0L)) / 2;
  };
  for (index_t i = 0; i < 2000; ++i) {
    const double p = std::ldexp(1 - uniform_number(i), -1 - int(i % 3 == 0 ? i % 900 : 0));
    const double z = normal_quantile(p);
    const long double slope =
        std::exp(-static_cast<long double>(z) * z / 2) / std::sqrt(8 * std::atan(1.0L));
    of_quantiles =
        std::max(of_quantiles, double(std::abs((exact(z) - p) / slope)) / (1e-3 + std::abs(z)));
  }
  for (double z = -37; z < 8; z += 0.43)
    of_probabilities = std::max(
        of_probabilities, double(std::abs(normal_probability(z) / exact(z) - 1)) / (1 + z * z));
  CHECK(of_quantiles < 2e-15);
  CHECK(of_probabilities < 2e-15);
  CHECK(normal_probability(-40) == 0);
  CHECK(normal_probability(0) == 0.5);
  CHECK(normal_probability(40) == 1);
}

TEST_CASE("draws give known numbers, the same bits on every machine") {
  const RandomState state{7, 9};
  const auto checksum = [&](const auto& f) {
    std::uint64_t sum = 14695981039346656037u;
    for (index_t i = 0; i < 10000; ++i) {
      const auto word = std::bit_cast<std::uint64_t>(f(state.bits(i)));
      for (int byte = 0; byte < 8; ++byte) sum = (sum ^ (word >> 8 * byte & 255)) * 1099511628211u;
    }
    return sum;
  };
  CHECK(checksum(Uniform<double>{-0.3, 1.1}) == 3652869527013358896u);
  CHECK(checksum(Normal<double>{0.1, 1.7}) == 14132080668302914595u);
  CHECK(checksum(TruncatedNormal<double>(0.1, 1.3, -2.3, 4.1)) == 15683669576650082752u);
}
