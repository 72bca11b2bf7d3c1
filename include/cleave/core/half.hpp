// The 16-bit floating point types: IEEE binary16 (`half`) and the upper half of a binary32
// (`bfloat16`). Storage only: arithmetic converts to float, and back with one rounding (to nearest,
// ties to even); code that sums halves accumulates in float.
//
// Conversions use the built-in bit cast, because device code cannot call the standard library's,
// and on a GPU its own instructions, which round alike.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  CLEAVE_HOST_DEVICE constexpr half(float value) : bits(round(value)) {}
  /// Converts other numbers to float first.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  CLEAVE_HOST_DEVICE constexpr half(Number value) : half(static_cast<float>(value)) {}

  CLEAVE_HOST_DEVICE constexpr operator float() const {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
      float value;
      asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
      return value;
    }
#endif
    const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1fu) return __builtin_bit_cast(float, sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
      return __builtin_bit_cast(float, sign | (exponent + 112u) << 23 | mantissa << 13);
    if (mantissa == 0) return __builtin_bit_cast(float, sign);
    std::uint32_t shift = 0;  // a subnormal half is a normal float
    while (!(mantissa & 0x400u)) mantissa <<= 1, ++shift;
    return __builtin_bit_cast(float, sign | (113u - shift) << 23 | (mantissa & 0x3ffu) << 13);
  }

 private:
  CLEAVE_HOST_DEVICE static constexpr std::uint16_t round(float value) {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
      std::uint16_t rounded;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
      return rounded;
    }
#endif
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    const std::uint16_t sign = std::uint16_t(word >> 16 & 0x8000u);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return std::uint16_t(sign | 0x7e00u);   // NaN stays NaN
    if (magnitude >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // rounds to infinity
    if (magnitude >= 0x38800000u) {                                      // a normal half
      const std::uint32_t odd = magnitude >> 13 & 1u;
      return std::uint16_t(sign | ((magnitude + 0xfffu + odd - 0x38000000u) >> 13));
    }
    if (magnitude < 0x33000000u) return sign;  // below half of the smallest subnormal
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t tie = 1u << (shift - 1u);
    return std::uint16_t(sign | (kept + (rest > tie || (rest == tie && (kept & 1u)))));
  }
};

/// The upper 16 bits of a binary32: 8 exponent bits, 7 mantissa bits.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  CLEAVE_HOST_DEVICE constexpr bfloat16(float value) : bits(round(value)) {}
  /// Converts other numbers to float first.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  CLEAVE_HOST_DEVICE constexpr bfloat16(Number value) : bfloat16(static_cast<float>(value)) {}

  CLEAVE_HOST_DEVICE constexpr operator float() const {
    return __builtin_bit_cast(float, std::uint32_t(bits) << 16);
  }

 private:
  CLEAVE_HOST_DEVICE static constexpr std::uint16_t round(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (!__builtin_is_constant_evaluated()) {
      std::uint16_t rounded;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
      return rounded;
    }
#endif
    const std::uint32_t word = __builtin_bit_cast(std::uint32_t, value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return std::uint16_t(word >> 16 | 0x40u);
    return std::uint16_t((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
};

}  // namespace cleave::inline v0
