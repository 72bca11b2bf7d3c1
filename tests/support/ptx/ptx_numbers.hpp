// The bits of 16-bit floating-point numbers, and rounding to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ptx {

/// The format of a 16-bit number: IEEE 754 binary16 or bfloat16 (section 5.2.3).
template <int Fraction>
struct Short {
  static constexpr int bias = (1 << (14 - Fraction)) - 1;
  std::uint16_t bits;

  double value() const {
    const int exponent = bits >> Fraction & ((1 << (15 - Fraction)) - 1);
    const int fraction = bits & ((1 << Fraction) - 1);
    const double sign = bits >> 15 != 0 ? -1 : 1;
    if (exponent == 2 * bias + 1)
      return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                           : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - Fraction);
    return sign * std::ldexp(fraction + (1 << Fraction), exponent - bias - Fraction);
  }

  /// Rounds to nearest, ties to even.
  static Short nearest(double x) {
    if (x != x) return {0x7fff};
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    constexpr std::uint16_t infinity = std::uint16_t((2 * bias + 1) << Fraction);
    const double size = std::fabs(x);
    if (size == 0) return {sign};
    if (std::isinf(size)) return {std::uint16_t(sign | infinity)};
    const int exponent = std::max(std::ilogb(size), 1 - bias);
    // Counts units of the last place; a carry into the next exponent is what the encoding does.
    const double units = std::nearbyint(std::ldexp(size, Fraction - exponent));
    const double encoded = units + std::ldexp(double(exponent + bias - 1), Fraction);
    return {std::uint16_t(sign | (encoded >= infinity ? infinity : std::uint16_t(encoded)))};
  }
};

using Half = Short<10>;
using BFloat = Short<7>;

}  // namespace ptx
