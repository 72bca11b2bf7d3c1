// The 8-bit floating point types of the Open Compute Project (OCP 8-bit Floating Point
// Specification, revision 1.0): E4M3, whose largest number is 448, and E5M2, with 57344.
//
// Storage only: they have no arithmetic. Conversions from float round to nearest, ties to even, and
// saturate: greater numbers and infinities become the largest number of their sign; NaN stays NaN.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

namespace detail {

/// A sign, `Exponent` bits with bias 2^(Exponent-1) - 1, and `Mantissa` bits.
/// @tparam Largest  the bits of the largest number
template <int Exponent, int Mantissa, std::uint8_t Largest>
struct Float8 {
  std::uint8_t bits = 0;

  Float8() = default;
  CLEAVE_HOST_DEVICE constexpr explicit Float8(float value) : bits(round(value)) {}

  CLEAVE_HOST_DEVICE constexpr explicit operator float() const {
    const std::uint32_t sign = std::uint32_t(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude > Largest) return __builtin_bit_cast(float, sign | nonfinite(magnitude));
    if (magnitude >> Mantissa != 0)
      return __builtin_bit_cast(float, sign | ((magnitude << dropped) + rebias));
    const float subnormal = float(magnitude) * __builtin_bit_cast(float, smallest);
    return sign != 0 ? -subnormal : subnormal;
  }

  /// As their values: NaN differs from itself, -0 equals 0.
  CLEAVE_HOST_DEVICE friend constexpr bool operator==(const Float8& a, const Float8& b) {
    return float(a) == float(b);
  }

 private:
  static constexpr int bias = (1 << (Exponent - 1)) - 1, dropped = 23 - Mantissa;
  static constexpr std::uint32_t rebias = std::uint32_t(127 - bias) << 23;
  /// As floats: 2^(1 - bias - Mantissa), the smallest number, and 2^(1 - bias), the first normal
  /// one.
  static constexpr std::uint32_t smallest = rebias + (std::uint32_t(1 - Mantissa) << 23),
                                 normal = rebias + (1u << 23);

  CLEAVE_HOST_DEVICE static constexpr std::uint32_t nonfinite(std::uint32_t magnitude) {
    return magnitude == (0x7fu >> Mantissa << Mantissa) ? 0x7f800000u : 0x7fc00000u;
  }

  CLEAVE_HOST_DEVICE static constexpr std::uint8_t round(float value) {
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = word >> 24 & 0x80u, magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return std::uint8_t(sign | 0x7fu);
    if (magnitude >= (std::uint32_t(Largest) << dropped) + rebias)
      return std::uint8_t(sign | Largest);
    if (magnitude >= normal) {
      const std::uint32_t odd = magnitude >> dropped & 1u, tie = 1u << (dropped - 1);
      return std::uint8_t(sign | ((magnitude - rebias + tie - 1u + odd) >> dropped));
    }
    // Floats from `unit` to 2 · unit are multiples of the smallest number.
    constexpr std::uint32_t unit = smallest + (23u << 23);
    const float sum = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, unit);
    return std::uint8_t(sign | (__builtin_bit_cast(std::uint32_t, sum) - unit));
  }
};

}  // namespace detail

/// OCP E4M3: 4 exponent bits, 3 mantissa bits, NaN, no infinities.
struct float8_e4m3 : detail::Float8<4, 3, 0x7e> {
  using Float8::Float8;
  static constexpr float largest = 448;
};

/// OCP E5M2: 5 exponent bits, 2 mantissa bits, NaN and infinities, which no conversion makes.
struct float8_e5m2 : detail::Float8<5, 2, 0x7b> {
  using Float8::Float8;
  static constexpr float largest = 57344;
};

template <class T>
inline constexpr bool is_float8 = std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>;

}  // namespace cleave::inline v0
