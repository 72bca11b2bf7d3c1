#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/core/half.hpp>

using namespace cleave;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A binary format with a sign, `exponent_bits` and `mantissa_bits`, as IEEE 754 defines its values.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity_bits() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }

  // The value of a finite positive number; for infinity, the next power of two, to which a number
  // must round in order to become infinite.
  double value(std::uint32_t bits) const {
    const int exponent = int(bits >> mantissa_bits);
    const double mantissa = double(bits & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias())
                         : std::ldexp(1 + mantissa, exponent - bias());
  }

  // The bits of the nearest number, found by trying all; ties go to the even mantissa.
  std::uint32_t nearest(double magnitude) const {
    std::uint32_t low = 0, high = infinity_bits();
    if (magnitude >= value(high)) return high;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - value(low), above = value(high) - magnitude;
    if (below == above) return low % 2 == 0 ? low : high;
    return below < above ? low : high;
  }
};

template <class T>
constexpr Format format_of{};
template <>
constexpr Format format_of<half>{5, 10};
template <>
constexpr Format format_of<bfloat16>{8, 7};

template <class T>
bool rounds_to_nearest(float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  return T(value).bits == (sign | format_of<T>.nearest(std::fabs(double(value))));
}

}  // namespace

TEST_CASE_TEMPLATE("every number of the format becomes the float of its value and comes back", T,
                   half, bfloat16) {
  const Format format = format_of<T>;
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    T number;
    number.bits = std::uint16_t(bits);
    const float value = number;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude > format.infinity_bits()) {
      wrong += !std::isnan(value) || !std::isnan(float(T(value)));
      continue;
    }
    const double expected =
        magnitude == format.infinity_bits() ? double(infinity) : format.value(magnitude);
    wrong += std::fabs(double(value)) != expected || std::signbit(value) != (bits >> 15 != 0) ||
             T(value).bits != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("floats round to the nearest number, ties to the even one", T, half, bfloat16) {
  const Format format = format_of<T>;
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < format.infinity_bits(); ++bits) {
    // The midpoint of two neighbours, and the floats on both sides of it.
    const double middle = (format.value(bits) + format.value(bits + 1)) / 2;
    const float tie = float(middle);
    REQUIRE(double(tie) == middle);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, infinity)}) {
      wrong += !rounds_to_nearest<T>(value);
      wrong += !rounds_to_nearest<T>(-value);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("floats of random bits round to the nearest number", T, half, bfloat16) {
  std::mt19937 random(1985);
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    const float value = std::bit_cast<float>(std::uint32_t(random()));
    if (std::isnan(value)) wrong += !std::isnan(float(T(value)));
    else wrong += !rounds_to_nearest<T>(value);
  }
  CHECK(wrong == 0);
}

TEST_CASE("the ends of the ranges") {
  CHECK(half(65504.0f).bits == 0x7bff);
  CHECK(half(65519.996f).bits == 0x7bff);
  CHECK(half(65520.0f).bits == 0x7c00);
  CHECK(half(-infinity).bits == 0xfc00);
  CHECK(half(std::ldexp(1.0f, -24)).bits == 0x0001);
  CHECK(half(std::ldexp(1.0f, -25)).bits == 0x0000);  // a tie: to even, that is, zero
  CHECK(half(std::ldexp(1.0001f, -25)).bits == 0x0001);
  CHECK(half(std::ldexp(1023.5f, -24)).bits == 0x0400);  // the largest subnormal rounds up
  CHECK(half(-0.0f).bits == 0x8000);
  CHECK(std::isnan(float(half(not_a_number))));
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(0x7f800001u)))));  // not infinity
  CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(0xffffffffu)))));  // not zero
}

TEST_CASE("arithmetic is done in float, and conversions are constant expressions") {
  static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);
  static_assert(half(1.0f).bits == 0x3c00 && float(half(1.0f)) == 1.0f);
  static_assert(bfloat16(1.0f).bits == 0x3f80 && float(bfloat16(-2.0f)) == -2.0f);
  static_assert(half(3).bits == half(3.0f).bits && half(0.5).bits == half(0.5f).bits);
  const half a(2048.0f), b(1.0f);
  CHECK(a + b == 2049.0f);
  CHECK(float(half(a + b)) == 2048.0f);  // a tie: to even
  CHECK(half().bits == 0);
}
