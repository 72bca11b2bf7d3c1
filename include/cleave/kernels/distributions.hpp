// Maps random bits to numbers of a distribution, one element at a time, with the same results on
// every machine and device (portable_functions.hpp).
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/random_state.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/portable_functions.hpp>

namespace cleave::inline v0::kernels {

/// A real number in [0, 1): a multiple of 2^-53 for double, 2^-24 for float, 2^-11 for half and
/// 2^-8 for bfloat16, the precision of each type.
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
      return T(std::fma(u, high.real() - low.real(), low.real()),
               std::fma(v, high.imag() - low.imag(), low.imag()));
    } else {
      using A = accumulator_t<T>;
      const A u = A(unit_interval<T>(bits[0], bits[1]));
      const T x = T(std::fma(u, A(high) - A(low), A(low)));
      return x < high ? x : low;  // rounding may reach `high`
    }
  }
};

/// Normal, by the Box-Muller method (1958), computed in double. Two uniform numbers give one normal
/// number, so that each element is computed independently. The real and the imaginary part of a
/// complex number each have half the variance.
template <class T>
struct Normal {
  accumulator_t<T> mean, deviation;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    const double u = 1 - unit_interval<double>(bits[0], bits[1]);  // in (0, 1]
    const CosineSine turn = portable_turn(unit_interval<double>(bits[2], bits[3]));
    const double radius = std::sqrt(-2 * portable_log(u));
    if constexpr (is_complex<T>) {
      using R = typename T::value_type;
      const double scale = deviation.real() * radius * (std::numbers::sqrt2 / 2);
      return T(R(std::fma(scale, turn.cosine, double(mean.real()))),
               R(std::fma(scale, turn.sine, double(mean.imag()))));
    } else {
      using A = accumulator_t<T>;
      return T(A(std::fma(double(deviation) * radius, turn.cosine, double(mean))));
    }
  }
};

/// Normal, truncated to [low, high], by inversion of the normal distribution function.
template <class T>
class TruncatedNormal {
 public:
  /// @pre deviation > 0, low < high, both finite
  TruncatedNormal(double mean, double deviation, double low, double high)
      : mean_(mean), deviation_(deviation), low_(low), high_(high) {
    double a = (low - mean) / deviation, b = (high - mean) / deviation;
    if (a > 0) {  // doubles resolve probabilities better in the lower tail
      sign_ = -1;
      const double lower = -b;
      b = -a;
      a = lower;
    }
    from_ = normal_probability(a);
    width_ = normal_probability(b) - from_;
  }

  /// Whether the probability of the interval is distinguishable from 0 in double precision.
  bool is_possible() const { return width_ > 0; }

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    const double u = unit_interval<double>(bits[0], bits[1]) + 0x1p-54;
    const double p = std::fma(u, width_, from_);
    const double below_one = p < 1 ? p : 1 - 0x1p-53;
    const double x = std::fma(sign_ * deviation_, normal_quantile(below_one), mean_);
    return T(accumulator_t<T>(x < low_ ? low_ : x > high_ ? high_ : x));  // after rounding
  }

 private:
  double mean_, deviation_, low_, high_;
  double from_ = 0, width_ = 0;
  double sign_ = 1;
};

/// Uniform integers in [low, low + count), by the multiplication method (Lemire 2019) without
/// rejection: the bias is below count / 2^64.
template <class T>
struct WholeNumbers {
  std::int64_t low;
  std::uint64_t count;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    const std::uint64_t word = std::uint64_t(bits[0]) << 32 | bits[1];
    return T(low + std::int64_t(high_product(word, count)));
  }

 private:
  /// The upper 64 bits of the product of two 64-bit numbers.
  static CLEAVE_HOST_DEVICE constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = std::uint32_t(a), a1 = a >> 32, b0 = std::uint32_t(b), b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + std::uint32_t(middle)) >> 32);
  }
};

/// Exponential with a positive rate, by inversion.
CLEAVE_HOST_DEVICE inline double exponential(const Philox::Counter& bits, double rate) {
  const double u = 1 - unit_interval<double>(bits[0], bits[1]);  // in (0, 1]
  return -portable_log(u) / rate;
}

/// One with a given probability, else zero.
template <class T>
struct Bernoulli {
  double probability;

  CLEAVE_HOST_DEVICE T operator()(const Philox::Counter& bits) const {
    return T(unit_interval<double>(bits[0], bits[1]) < probability ? 1 : 0);
  }
};

/// Dropout as a function of the global index: zero with `probability`, else x / (1 - probability).
class DroppedOut {
 public:
  DroppedOut(double probability, const RandomState& state)
      : probability_(probability), scale_(1 / (1 - probability)), state_(state) {}

  template <class T>
  CLEAVE_HOST_DEVICE T operator()(index_t i, const T& x) const {
    const auto bits = state_.bits(i);
    if (unit_interval<double>(bits[0], bits[1]) < probability_) return T();
    using A = accumulator_t<T>;
    return T(scaled(A(x), real_t<A>(scale_)));
  }

 private:
  double probability_, scale_;
  RandomState state_;
};

/// A distribution as a function of the global index: element i of the draw given by `state`.
template <class F>
struct Drawn {
  F f;
  RandomState state;

  CLEAVE_HOST_DEVICE auto operator()(index_t i) const { return f(state.bits(i)); }
};

}  // namespace cleave::inline v0::kernels
