// Dual numbers: a value and its slope along one argument. A generic elementwise function
// called with dual numbers returns its derivative too (forward-mode differentiation, Wengert 1964).
#pragma once

#include <cmath>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>

namespace cleave::inline v0::kernels {

/// value + slope · ε, with ε² = 0.
template <class T>
struct Dual {
  T value{};
  T slope{};

  CLEAVE_HOST_DEVICE constexpr Dual(const T& v = T(0), const T& s = T(0)) : value(v), slope(s) {}
  template <class N>
    requires(std::is_arithmetic_v<N> && !std::is_same_v<N, T>)
  CLEAVE_HOST_DEVICE constexpr Dual(const N& v) : value(T(v)), slope(T(0)) {}

  CLEAVE_HOST_DEVICE friend constexpr Dual operator+(const Dual& a, const Dual& b) {
    return {T(a.value + b.value), T(a.slope + b.slope)};
  }
  CLEAVE_HOST_DEVICE friend constexpr Dual operator-(const Dual& a, const Dual& b) {
    return {T(a.value - b.value), T(a.slope - b.slope)};
  }
  CLEAVE_HOST_DEVICE friend constexpr Dual operator-(const Dual& a) {
    return {T(-a.value), T(-a.slope)};
  }
  CLEAVE_HOST_DEVICE friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {T(a.value * b.value), T(a.slope * b.value + a.value * b.slope)};
  }
  CLEAVE_HOST_DEVICE friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    const T quotient = T(a.value / b.value);
    return {quotient, T((a.slope - quotient * b.slope) / b.value)};
  }
  CLEAVE_HOST_DEVICE friend constexpr bool operator<(const Dual& a, const Dual& b) {
    return a.value < b.value;
  }
  CLEAVE_HOST_DEVICE friend constexpr bool operator>(const Dual& a, const Dual& b) {
    return b.value < a.value;
  }
  CLEAVE_HOST_DEVICE friend constexpr bool operator<=(const Dual& a, const Dual& b) {
    return a.value <= b.value;
  }
  CLEAVE_HOST_DEVICE friend constexpr bool operator>=(const Dual& a, const Dual& b) {
    return b.value <= a.value;
  }
  CLEAVE_HOST_DEVICE friend constexpr bool operator==(const Dual& a, const Dual& b) {
    return a.value == b.value;
  }
};

// Found by argument-dependent lookup, as in `using std::exp; exp(x)`. T may itself be a Dual.
template <class T>
CLEAVE_HOST_DEVICE Dual<T> exp(const Dual<T>& a) {
  using std::exp;
  const T y = T(exp(a.value));
  return {y, T(a.slope * y)};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> log(const Dual<T>& a) {
  using std::log;
  return {T(log(a.value)), T(a.slope / a.value)};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> sqrt(const Dual<T>& a) {
  using std::sqrt;
  const T y = T(sqrt(a.value));
  return {y, T(a.slope / (T(2) * y))};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> sin(const Dual<T>& a) {
  using std::cos, std::sin;
  return {T(sin(a.value)), T(a.slope * cos(a.value))};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> cos(const Dual<T>& a) {
  using std::cos, std::sin;
  return {T(cos(a.value)), T(-a.slope * sin(a.value))};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> tanh(const Dual<T>& a) {
  using std::tanh;
  const T y = T(tanh(a.value));
  return {y, T(a.slope * (T(1) - y * y))};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> erf(const Dual<T>& a) {
  using std::erf, std::exp;
  constexpr double two_by_root_pi = 1.12837916709551257390;
  return {T(erf(a.value)), T(a.slope * T(two_by_root_pi) * T(exp(-a.value * a.value)))};
}
template <class T>
CLEAVE_HOST_DEVICE Dual<T> abs(const Dual<T>& a) {
  return a.value < T(0) ? -a : a;
}

/// The argument type for differentiating a function of T: Dual<T> for floating-point T, else T.
template <class T>
using DualOr = std::conditional_t<std::is_floating_point_v<T>, Dual<T>, T>;

/// An argument as a dual number. @tparam Varies  whether the derivative is taken with respect to it
template <bool Varies, class T>
CLEAVE_HOST_DEVICE constexpr DualOr<T> dual_argument(const T& x) {
  if constexpr (std::is_floating_point_v<T>) return {x, Varies ? T(1) : T(0)};
  else return x;
}

/// The slope of a function's result; 0 for a constant, which is not a Dual.
template <class T>
CLEAVE_HOST_DEVICE constexpr T slope_of(const Dual<T>& y) {
  return y.slope;
}
template <class T>
CLEAVE_HOST_DEVICE constexpr T slope_of(const T&) {
  return T(0);
}

}  // namespace cleave::inline v0::kernels
