#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <cleave/core/half.hpp>
#include <cleave/kernels/element_functions.hpp>

using namespace cleave;
using namespace cleave::kernels;

namespace {

/// The distance relative to the size of the number.
template <class R>
R off(const std::complex<R>& actual, const std::complex<R>& expected) {
  return std::abs(actual - expected) / (std::abs(expected) + std::numeric_limits<R>::min());
}

/// Numbers on and off the axes, in all quadrants, near the unit circle, large and small.
template <class R, class Check>
void for_numbers(const Check& check) {
  const R parts[] = {0, R(0.001), R(0.3), R(0.7), 1, R(1.5), 3, R(10.5), 40, R(1e4)};
  for (const R x : parts)
    for (const R y : parts)
      for (const R sx : {R(-1), R(1)})
        for (const R sy : {R(-1), R(1)}) check(std::complex<R>(sx * x, sy * y));
}

}  // namespace

TEST_CASE_TEMPLATE("functions of complex numbers are those of the standard library", R, float,
                   double) {
  using C = std::complex<R>;
  const R few = 16 * std::numeric_limits<R>::epsilon();
  for_numbers<R>([&](const C& z) {
    CAPTURE(z.real());
    CAPTURE(z.imag());
    if (z.real() <= 40) CHECK(off(exponential(z), std::exp(z)) < few);
    if (z != C(0)) CHECK(off(logarithm(z), std::log(z)) < few);
    CHECK(off(square_root(z), std::sqrt(z)) < few);
    CHECK(off(hyperbolic_tangent(z), std::tanh(z)) < few);
    CHECK(magnitude(z) == std::abs(z));
    const C denominator = C(1) + std::exp(-z);
    if (z.real() >= -40 && std::abs(denominator) > R(0.1))
      CHECK(off(logistic(z), C(1) / denominator) < few);
  });
}

TEST_CASE_TEMPLATE("sums, products and quotients of complex numbers are computed by parts", R,
                   float, double) {
  using C = std::complex<R>;
  const R few = 8 * std::numeric_limits<R>::epsilon();
  for_numbers<R>([&](const C& z) {
    for (const C w : {C(1, 2), C(-3, R(0.01)), C(R(0.001), -7), C(0, 5), C(-2, 0)}) {
      CHECK(plus(z, w) == z + w);
      CHECK(minus(z, w) == z - w);
      CHECK(off(times(z, w), z * w) < few);
      CHECK(off(quotient(z, w), z / w) < few);
    }
    CHECK(scaled(z, R(3)) == z * R(3));
    CHECK(divided(z, R(3)) == z / R(3));
  });
  CHECK(std::isinf(quotient(C(1, 0), C(0, 0)).real()));
}

TEST_CASE("roots and logarithms take the principal branch, on either side of the cut") {
  using C = std::complex<double>;
  CHECK(square_root(C(-4, 0.0)).imag() == 2);
  CHECK(square_root(C(-4, -0.0)).imag() == -2);
  CHECK(logarithm(C(-1, 0.0)).imag() == doctest::Approx(3.14159265358979));
  CHECK(logarithm(C(-1, -0.0)).imag() == doctest::Approx(-3.14159265358979));
  CHECK(hyperbolic_tangent(C(800, 1)) == C(1, 0));
  CHECK(hyperbolic_tangent(C(-800, 1)).real() == -1);
}

TEST_CASE("functions of real numbers are the standard's") {
  CHECK(exponential(0.5f) == std::exp(0.5f));
  CHECK(logarithm(2.0) == std::log(2.0));
  CHECK(square_root(2.0f) == std::sqrt(2.0f));
  CHECK(hyperbolic_tangent(0.25) == std::tanh(0.25));
  CHECK(logistic(0.0) == 0.5);
  CHECK(quotient(7, 2) == 3);
  CHECK(magnitude(-3) == 3);
  CHECK(!std::signbit(magnitude(-0.0)));
  CHECK(magnitude(std::uint8_t(200)) == 200);
  CHECK(float(magnitude(half(-2.5f))) == 2.5f);
}
