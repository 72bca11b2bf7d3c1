// Floats of 8 bits, compared with the values that the OCP specification (revision 1.0, tables 1 and
// 2) gives their bits, and with a search of all of them.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include <cleave/core/float8.hpp>

using namespace cleave;

namespace float8_conversions {
namespace {

template <class T>
constexpr bool is_e4m3 = std::is_same_v<T, float8_e4m3>;
template <class T>
constexpr int largest_bits = is_e4m3<T> ? 0x7e : 0x7b;

template <class T>
T of_bits(int bits) {
  T x;
  x.bits = std::uint8_t(bits);
  return x;
}

/// The value of a byte.
template <class T>
double decoded(int bits) {
  const double sign = bits >= 128 ? -1 : 1;
  const int mantissas = is_e4m3<T> ? 8 : 4, bias = is_e4m3<T> ? 7 : 15;
  const int exponent = bits % 128 / mantissas, mantissa = bits % mantissas;
  if (is_e4m3<T> && bits % 128 == 127) return std::nan("");
  if (!is_e4m3<T> && exponent == 31)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * mantissa / mantissas * std::pow(2., 1 - bias);
  return sign * (1 + double(mantissa) / mantissas) * std::pow(2., exponent - bias);
}

/// The bits of the nearest number with that sign, by a search of all; of two, the even one.
template <class T>
int nearest(double x) {
  int best = 0;
  const bool is_beyond = std::abs(x) > decoded<T>(largest_bits<T>);
  if (is_beyond) best = largest_bits<T>;
  for (int bits = 1; bits <= largest_bits<T> && !is_beyond; ++bits) {
    const double distance = std::abs(decoded<T>(bits) - std::abs(x));
    const double least = std::abs(decoded<T>(best) - std::abs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits;
  }
  return best + (std::signbit(x) ? 128 : 0);
}

template <class T>
int count_wrong(float x) {
  return int(T(x).bits != nearest<T>(double(x))) + int(T(-x).bits != nearest<T>(double(-x)));
}

}  // namespace
}  // namespace float8_conversions

using namespace float8_conversions;

TEST_CASE_TEMPLATE("all bytes have the values of the specification, and come back", T, float8_e4m3,
                   float8_e5m2) {
  for (int bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const double expected = decoded<T>(bits);
    const float value = float(of_bits<T>(bits));
    if (std::isnan(expected)) {
      CHECK(std::isnan(value));
      CHECK(std::isnan(float(T(value))));
    } else {
      CHECK(double(value) == expected);
      CHECK(std::signbit(value) == (bits >= 128));
      CHECK(T(value).bits == (std::isinf(expected) ? bits - 1 : bits));
    }
  }
}

TEST_CASE_TEMPLATE("floats round to the nearest byte, ties to the even one", T, float8_e4m3,
                   float8_e5m2) {
  int wrong = 0;
  for (int bits = 0; bits < largest_bits<T>; ++bits) {
    const auto tie = float((decoded<T>(bits) + decoded<T>(bits + 1)) / 2);
    for (const float x : {tie, std::nextafter(tie, 0.f), std::nextafter(tie, 1e9f)})
      wrong += count_wrong<T>(x);
  }
  std::mt19937 random(2022);
  for (int i = 0; i < 20000; ++i) {
    const auto word = std::uint32_t(random());
    const auto any = std::bit_cast<float>(word);
    if (std::isnan(any)) wrong += !std::isnan(float(T(any)));
    else wrong += count_wrong<T>(any);
    // exponents near those of the type
    wrong += count_wrong<T>(std::bit_cast<float>((word & 0x7fffffu) | (100 + word % 50) << 23));
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("what is beyond the largest number becomes it", T, float8_e4m3, float8_e5m2) {
  const float largest = is_e4m3<T> ? 448.f : 57344.f;
  CHECK(T::largest == largest);
  for (const float x :
       {largest, 1.01f * largest, 2 * largest, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::max()}) {
    CHECK(float(T(x)) == largest);
    CHECK(float(T(-x)) == -largest);
  }
  static_assert(sizeof(T) == 1 && float(T(-1.5f)) == -1.5f && T(0.f).bits == 0);
  CHECK(T(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(T(-0.f).bits == 0x80);
  CHECK(T().bits == 0);
}

TEST_CASE_TEMPLATE("bytes are equal if their values are", T, float8_e4m3, float8_e5m2) {
  int wrong = 0;
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      wrong += (of_bits<T>(a) == of_bits<T>(b)) != (decoded<T>(a) == decoded<T>(b));
  CHECK(wrong == 0);
}
