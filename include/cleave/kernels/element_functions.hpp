// Elementary functions of single elements, the same source for every device and element type.
//
// Functions of complex numbers are composed of real ones, because those of the standard library are
// not available in device code. They return principal values, as the standard library does,
// accurate to a few units in the last place if no part is infinite.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::kernels {

/// |a|; real for complex a.
template <class T>
CLEAVE_HOST_DEVICE real_t<T> magnitude(const T& a) {
  if constexpr (is_complex<T>) return std::hypot(a.real(), a.imag());
  else if constexpr (std::is_unsigned_v<T>) return a;
  else return T(a < T(0) ? minus(T(0), a) : a == T(0) ? T(0) : a);  // |-0| is 0
}

/// a / b; integer division truncates. Complex division scales by the larger part of b (Smith).
template <class T>
CLEAVE_HOST_DEVICE T quotient(const T& a, const T& b) {
  if constexpr (!is_complex<T>) {
    return T(a / b);
  } else {
    using R = real_t<T>;
    if (b.imag() == R(0)) return divided(a, b.real());
    if (magnitude(b.real()) >= magnitude(b.imag())) {
      const R ratio = b.imag() / b.real(), scale = b.real() + b.imag() * ratio;
      return T((a.real() + a.imag() * ratio) / scale, (a.imag() - a.real() * ratio) / scale);
    }
    const R ratio = b.real() / b.imag(), scale = b.real() * ratio + b.imag();
    return T((a.real() * ratio + a.imag()) / scale, (a.imag() * ratio - a.real()) / scale);
  }
}

template <class T>
CLEAVE_HOST_DEVICE T exponential(const T& a) {
  if constexpr (!is_complex<T>) {
    return T(std::exp(a));
  } else {
    const auto size = std::exp(a.real());
    if (a.imag() == real_t<T>(0)) return T(size, a.imag());
    return T(size * std::cos(a.imag()), size * std::sin(a.imag()));
  }
}

/// Near the unit circle, log |a| is computed from the distance of |a| to 1.
template <class T>
CLEAVE_HOST_DEVICE T logarithm(const T& a) {
  if constexpr (!is_complex<T>) {
    return T(std::log(a));
  } else {
    using R = real_t<T>;
    const R size = magnitude(a), x = magnitude(a.real()), y = magnitude(a.imag());
    const R larger_part = x > y ? x : y, smaller_part = x > y ? y : x;
    const R real =
        size > R(0.5) && size < R(2)
            ? std::log1p((larger_part - 1) * (larger_part + 1) + smaller_part * smaller_part) / 2
            : std::log(size);
    return T(real, std::atan2(a.imag(), a.real()));
  }
}

/// The square root with non-negative real part.
template <class T>
CLEAVE_HOST_DEVICE T square_root(const T& a) {
  if constexpr (!is_complex<T>) {
    return T(std::sqrt(a));
  } else {
    using R = real_t<T>;
    const R x = magnitude(a.real()), size = magnitude(a);
    if (size == R(0)) return T(R(0), a.imag());
    const R root = std::sqrt(x / 2 + size / 2);
    if (!(a.real() < R(0))) return T(root, a.imag() / (2 * root));
    return T(magnitude(a.imag()) / (2 * root), std::copysign(root, a.imag()));
  }
}

/// tanh(x + iy) = ((1 + t^2) s cosh(x) + it) / (1 + (1 + t^2) s^2) with t = tan(y), s = sinh(x);
/// its limit where s would overflow.
template <class T>
CLEAVE_HOST_DEVICE T hyperbolic_tangent(const T& a) {
  if constexpr (!is_complex<T>) {
    return T(std::tanh(a));
  } else {
    using R = real_t<T>;
    constexpr R far = R(std::numeric_limits<R>::digits) / 2 + 8;
    if (magnitude(a.real()) > far) {
      const R rest = 4 * std::sin(a.imag()) * std::cos(a.imag());
      return T(std::copysign(R(1), a.real()), rest * std::exp(-2 * magnitude(a.real())));
    }
    const R t = std::tan(a.imag()), s = std::sinh(a.real());
    const R slope = 1 + t * t, scale = 1 + slope * s * s;
    return T(slope * s * std::sqrt(1 + s * s) / scale, t / scale);
  }
}

/// a to the power b; for complex numbers exp(b log(a)), with 0^0 = 1.
template <class T>
CLEAVE_HOST_DEVICE T power(const T& a, const T& b) {
  if constexpr (!is_complex<T>) {
    return T(std::pow(a, b));
  } else {
    if (b == T(0)) return T(1);
    if (a == T(0) && b.real() > real_t<T>(0)) return T(0);
    return exponential(times(b, logarithm(a)));
  }
}

template <class T>
CLEAVE_HOST_DEVICE T sine(const T& a) {
  if constexpr (!is_complex<T>) return T(std::sin(a));
  else return T(std::sin(a.real()) * std::cosh(a.imag()), std::cos(a.real()) * std::sinh(a.imag()));
}
template <class T>
CLEAVE_HOST_DEVICE T cosine(const T& a) {
  if constexpr (!is_complex<T>) return T(std::cos(a));
  else
    return T(std::cos(a.real()) * std::cosh(a.imag()), -std::sin(a.real()) * std::sinh(a.imag()));
}
/// tan(a) = -i tanh(ia)
template <class T>
CLEAVE_HOST_DEVICE T tangent(const T& a) {
  if constexpr (!is_complex<T>) {
    return T(std::tan(a));
  } else {
    const T rotated = hyperbolic_tangent(T(-a.imag(), a.real()));
    return T(rotated.imag(), -rotated.real());
  }
}
template <class T>
CLEAVE_HOST_DEVICE T hyperbolic_sine(const T& a) {
  if constexpr (!is_complex<T>) return T(std::sinh(a));
  else return T(std::sinh(a.real()) * std::cos(a.imag()), std::cosh(a.real()) * std::sin(a.imag()));
}
template <class T>
CLEAVE_HOST_DEVICE T hyperbolic_cosine(const T& a) {
  if constexpr (!is_complex<T>) return T(std::cosh(a));
  else return T(std::cosh(a.real()) * std::cos(a.imag()), std::sinh(a.real()) * std::sin(a.imag()));
}

/// 1 / (1 + exp(-a)).
template <class T>
CLEAVE_HOST_DEVICE T logistic(const T& a) {
  return quotient(T(1), plus(T(1), exponential(minus(T(0), a))));
}

}  // namespace cleave::inline v0::kernels
