// Arithmetic of single elements, the same on every device and for every element type.
//
// Integers wrap; 16-bit floats are computed in float; complex products use the schoolbook formula
// (C99's recovery of infinities would cost a branch per element); `larger` and `smaller` propagate
// NaNs.
//
// Complex arithmetic is written out by real and imaginary parts: nvcc silently compiles the
// operators of std::complex to nothing in device code.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

template <class T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};

}  // namespace detail

/// The type in which T is computed: unsigned for integers, so that overflow is defined.
template <class T>
using wrapping_t = typename detail::Wrapping<T>::type;

template <class T>
CLEAVE_HOST_DEVICE constexpr T plus(const T& a, const T& b) {
  if constexpr (is_complex<T>) return T(a.real() + b.real(), a.imag() + b.imag());
  else return T(wrapping_t<T>(a) + wrapping_t<T>(b));
}

template <class T>
CLEAVE_HOST_DEVICE constexpr T minus(const T& a, const T& b) {
  if constexpr (is_complex<T>) return T(a.real() - b.real(), a.imag() - b.imag());
  else return T(wrapping_t<T>(a) - wrapping_t<T>(b));
}

template <class T>
CLEAVE_HOST_DEVICE constexpr T times(const T& a, const T& b) {
  if constexpr (is_complex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else if constexpr (std::is_integral_v<T>)
    return T(1u * wrapping_t<T>(a) * wrapping_t<T>(b));  // 16 bits would be promoted to int
  else return T(a * b);
}

/// The real type of T: R for std::complex<R>, else T.
template <class T>
struct RealPart {
  using type = T;
};
template <class R>
struct RealPart<std::complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename RealPart<T>::type;

/// a * factor and a / divisor, with a real factor or divisor.
template <class T>
CLEAVE_HOST_DEVICE constexpr T scaled(const T& a, const real_t<T>& factor) {
  if constexpr (is_complex<T>) return T(a.real() * factor, a.imag() * factor);
  else return times(a, factor);
}
template <class T>
CLEAVE_HOST_DEVICE constexpr T divided(const T& a, const real_t<T>& divisor) {
  if constexpr (is_complex<T>) return T(a.real() / divisor, a.imag() / divisor);
  else return T(a / divisor);
}

template <class T>
CLEAVE_HOST_DEVICE constexpr bool is_nan(const T& a) {
  if constexpr (std::is_integral_v<T>) return false;
  else return a != a;
}

template <class T>
CLEAVE_HOST_DEVICE constexpr T larger(const T& a, const T& b) {
  return int(a < b) | int(is_nan(b)) ? b : a;  // without a branch: vectorises
}

template <class T>
CLEAVE_HOST_DEVICE constexpr T smaller(const T& a, const T& b) {
  return int(b < a) | int(is_nan(b)) ? b : a;
}

/// The largest and the smallest value of T: infinities where T has them.
template <class T>
constexpr T highest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
  else if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  else return T(std::numeric_limits<float>::infinity());
}
template <class T>
constexpr T lowest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::min();
  else return T(-accumulator_t<T>(highest<T>()));
}

/// The identity function.
struct Same {
  template <class T>
  CLEAVE_HOST_DEVICE constexpr T operator()(const T& a) const {
    return a;
  }
};

/// Division by an element count, in the type in which sums of T are accumulated.
template <class T>
class DividedBy {
 public:
  explicit DividedBy(index_t count) : count_(Real(count)) {}
  CLEAVE_HOST_DEVICE accumulator_t<T> operator()(const accumulator_t<T>& a) const {
    return divided(a, count_);
  }

 private:
  using Real = real_t<accumulator_t<T>>;
  Real count_;
};

/// A reduction by Sum, Product, Max or Min: its identity element and its combining operation. For
/// reductions of bits, the operation only.
template <class Op>
struct Fold {
  template <class T>
  static constexpr T identity() {
    if constexpr (std::is_same_v<Op, Sum>) return T(0);
    else if constexpr (std::is_same_v<Op, Product>) return T(1);
    else if constexpr (std::is_same_v<Op, Max>) return lowest<T>();
    else return highest<T>();
  }
  template <class T>
  CLEAVE_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    if constexpr (std::is_same_v<Op, Sum>) return plus(a, b);
    else if constexpr (std::is_same_v<Op, Product>) return times(a, b);
    else if constexpr (std::is_same_v<Op, Max>) return larger(a, b);
    else if constexpr (std::is_same_v<Op, BitAnd>) return T(a & b);
    else if constexpr (std::is_same_v<Op, BitOr>) return T(a | b);
    else if constexpr (std::is_same_v<Op, BitXor>) return T(a ^ b);
    else return smaller(a, b);
  }
};

}  // namespace cleave::inline v0::kernels
