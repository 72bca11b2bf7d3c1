// The functions of the named elementwise operations, and what is true of them on partial operands.
//
// A row of `partials` is written where it holds for all values, including those that stand for
// nothing (a rank without elements has the least value of the type as its candidate for a maximum):
//
//   sum, avg   what is linear: f(x1 + x2, y1 + y2) = f(x1, y1) + f(x2, y2)
//   avg        also what is affine: avg(x) + y = avg(x + y); with a sum, y would be counted n times
//   max, min   what is monotone in the operand; falling functions turn one into the other. Adding
//              is not: integers wrap, and -inf, a candidate that stands for nothing, plus inf is
//              NaN
//   product    what is multiplicative
//
// Sums are the exception: a rank's part of one may be zero, and 0 * inf and 0 / 0 are NaN.
//
// Types without an order (complex) have no partials of max and min, so their rows are never used.
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/arithmetic.hpp>
#include <cleave/kernels/functions.hpp>

namespace cleave::functors {

template <class T>
struct Add {
  static constexpr const char* partials =
      std::is_integral_v<T> ? "sum,sum->sum" : "sum,sum->sum; avg,avg->avg; avg,R->avg; R,avg->avg";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::plus(a, b); }
};

template <class T>
struct Sub {
  static constexpr const char* partials =
      std::is_same_v<T, bool> ? ""
      : std::is_integral_v<T> ? "sum,sum->sum"
                              : "sum,sum->sum; avg,avg->avg; avg,R->avg; R,avg->avg";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::minus(a, b); }
};

template <class T>
struct Mul {
  static constexpr const char* partials =
      "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg; product,product->product";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::times(a, b); }
};

/// Quotients of integers are cut off, so that nothing is linear about them.
template <class T>
struct Div {
  static constexpr const char* partials =
      std::is_integral_v<T> ? "" : "sum,R->sum; avg,R->avg; product,product->product";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::quotient(a, b); }
};

template <class T>
struct Neg {
  static constexpr const char* partials =
      std::is_integral_v<T> ? "sum->sum" : "sum->sum; avg->avg; max->min; min->max";
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    if constexpr (std::is_integral_v<T>) return kernels::minus(T(0), a);
    else if constexpr (is_complex<T>) return T(-a.real(), -a.imag());
    else return T(-accumulator_t<T>(a));
  }
};

/// Rows of a function that never falls.
struct Rising {
  static constexpr const char* partials = "max->max; min->min";
};

/// A NaN stays one.
template <class T>
struct Relu : Rising {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const { return a < T(0) ? T(0) : a; }
};

template <class T>
struct Exp : Rising {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::exponential(accumulator_t<T>(a)));
  }
};

template <class T>
struct Tanh : Rising {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::hyperbolic_tangent(accumulator_t<T>(a)));
  }
};

template <class T>
struct Sigmoid : Rising {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::logistic(accumulator_t<T>(a)));
  }
};

/// Rises where it is defined, which the candidates of a maximum need not be: no rows.
template <class T>
struct Log {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::logarithm(accumulator_t<T>(a)));
  }
};

template <class T>
struct Sqrt {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::square_root(accumulator_t<T>(a)));
  }
};

/// The magnitude; a real number for complex ones.
template <class T>
struct Abs {
  CLEAVE_HOST_DEVICE kernels::real_t<T> operator()(const T& a) const {
    return kernels::magnitude(a);
  }
};

template <class T>
struct Square {
  CLEAVE_HOST_DEVICE T operator()(const T& a) const { return kernels::times(a, a); }
};

/// A NaN among the operands is the result.
template <class T>
struct Maximum {
  static constexpr const char* partials =
      "max,max->max; max,R->max; R,max->max; min,R->min; R,min->min";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::larger(a, b); }
};

template <class T>
struct Minimum {
  static constexpr const char* partials =
      "min,min->min; min,R->min; R,min->min; max,R->max; R,max->max";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const { return kernels::smaller(a, b); }
};

/// A choice between values commutes with any reduction of both; with one that repeats a
/// replicated value harmlessly, of either.
template <class T>
struct Where {
  static constexpr const char* partials =
      "R,sum,sum->sum; R,avg,avg->avg; R,max,max->max; R,min,min->min; "
      "R,product,product->product; R,avg,R->avg; R,R,avg->avg; R,max,R->max; R,R,max->max; "
      "R,min,R->min; R,R,min->min";
  CLEAVE_HOST_DEVICE T operator()(bool condition, const T& a, const T& b) const {
    return condition ? a : b;
  }
};

/// Whether every From is a To: a sum of such casts is the cast of the sum, up to rounding in the
/// wider type.
template <class From, class To>
inline constexpr bool widens = [] {
  using F = accumulator_t<From>;
  using T = accumulator_t<To>;
  if constexpr (std::is_same_v<From, To>) return true;
  else if constexpr (std::is_same_v<From, half> && std::is_same_v<To, bfloat16>) return false;
  else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, half>) return false;
  else if constexpr (sizeof(To) < sizeof(From)) return false;
  else if constexpr (is_complex<F>) return is_complex<T>;
  else if constexpr (is_complex<T>)
    return std::is_floating_point_v<F> && sizeof(F) <= sizeof(typename T::value_type);
  else return std::is_floating_point_v<F> && std::is_floating_point_v<T>;
}();

/// Whether a cast keeps the order of all values.
template <class From, class To>
inline constexpr bool keeps_order = [] {
  if constexpr (is_complex<From> || is_complex<To> || std::is_same_v<To, bool>) return false;
  else if constexpr (!std::is_integral_v<To>) return true;
  else if constexpr (!std::is_integral_v<From>) return false;  // not where it overflows
  else if constexpr (std::is_signed_v<From> && std::is_unsigned_v<To>) return false;
  else return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits;
}();

template <class From, class To>
struct Cast {
  static constexpr const char* partials =
      widens<From, To> ? (keeps_order<From, To> ? "sum->sum; avg->avg; max->max; min->min"
                                                : "sum->sum; avg->avg")
                       : (keeps_order<From, To> ? "max->max; min->min" : "");
  CLEAVE_HOST_DEVICE To operator()(const From& a) const {
    using F = accumulator_t<From>;
    using T = accumulator_t<To>;
    if constexpr (is_complex<F> && is_complex<T>)
      return To(kernels::real_t<T>(a.real()), kernels::real_t<T>(a.imag()));
    else if constexpr (is_complex<T>) return To(kernels::real_t<T>(F(a)));
    else if constexpr (std::is_same_v<To, bool>) return F(a) != F(0);
    else return To(T(F(a)));
  }
};

}  // namespace cleave::functors
