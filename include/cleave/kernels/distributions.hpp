// Numbers of a distribution from random bits, one element at a time.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/philox.hpp>

namespace cleave::kernels {

/// A real number in [0, 1), a multiple of 2^-53 (of 2^-24 below double, of 2^-11 and 2^-8 for half
/// and bfloat16, which have no more bits).
template <class T>
CLEAVE_HOST_DEVICE constexpr T unit_interval(std::uint32_t high, std::uint32_t low) {
  if constexpr (std::is_same_v<T, double>)
    return double((std::uint64_t(high) << 32 | low) >> 11) * 0x1p-53;
  else if constexpr (std::is_same_v<T, float>) return float(high >> 8) * 0x1p-24f;
  else if constexpr (std::is_same_v<T, half>) return T(float(high >> 21) * 0x1p-11f);
  else return T(float(high >> 24) * 0x1p-8f);
}

/// Uniform in [low, high).
template <class T>
struct Uniform {
  T low, high;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    if constexpr (is_complex<T>) {
      using R = typename T::value_type;
      const R u = unit_interval<R>(bits[0], bits[1]), v = unit_interval<R>(bits[2], bits[3]);
      return T(low.real() + u * (high.real() - low.real()),
               low.imag() + v * (high.imag() - low.imag()));
    } else {
      using A = accumulator_t<T>;
      const A u = A(unit_interval<T>(bits[0], bits[1]));
      const T x = T(A(low) + u * (A(high) - A(low)));
      return x < high ? x : low;  // rounded up to the end of the interval
    }
  }
};

/// Normal, by the method of Box and Muller (1958), computed in double: two uniform numbers make one
/// normal one, so that every element stands for itself. The parts of a complex number have half of
/// the variance each.
template <class T>
struct Normal {
  accumulator_t<T> mean, deviation;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    const double u = 1 - unit_interval<double>(bits[0], bits[1]);  // in (0, 1]
    const double v = unit_interval<double>(bits[2], bits[3]);
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
    if constexpr (is_complex<T>) {
      using R = typename T::value_type;
      const double scale = deviation.real() * std::numbers::sqrt2 / 2;
      return mean + T(R(scale * radius * std::cos(angle)), R(scale * radius * std::sin(angle)));
    } else {
      return T(accumulator_t<T>(double(mean) + double(deviation) * radius * std::cos(angle)));
    }
  }
};

/// Whole numbers in [low, high), by the product method (Lemire 2019, without rejection: the bias
/// is below (high - low) / 2^64).
template <class T>
struct WholeNumbers {
  std::int64_t low;
  std::uint64_t count;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    const std::uint64_t word = std::uint64_t(bits[0]) << 32 | bits[1];
    return T(low + std::int64_t(high_product(word, count)));
  }

 private:
  /// The upper 64 bits of a product of 64-bit numbers.
  static CLEAVE_HOST_DEVICE constexpr std::uint64_t high_product(std::uint64_t a,
                                                                 std::uint64_t b) {
    const std::uint64_t a0 = std::uint32_t(a), a1 = a >> 32, b0 = std::uint32_t(b), b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + std::uint32_t(middle)) >> 32);
  }
};

/// True with a given probability.
struct Bernoulli {
  double probability;

  CLEAVE_HOST_DEVICE bool operator()(const Philox::Counter& bits) const {
    return unit_interval<double>(bits[0], bits[1]) < probability;
  }
};

}  // namespace cleave::kernels
