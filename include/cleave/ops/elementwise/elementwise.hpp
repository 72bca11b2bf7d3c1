// Common parts of the named elementwise operations: conversion to one element type, and the element
// types that an operation accepts.
//
// An operation declares a row of `partials` only if it holds for all values, including neutral ones
// (a rank without elements contributes the lowest value of the type to a maximum):
//
//   sum, avg   linear functions: f(x1 + x2, y1 + y2) = f(x1, y1) + f(x2, y2)
//   avg        also affine functions: avg(x) + y = avg(x + y); a sum would count y n times
//   max, min   functions monotone in the operand; decreasing ones swap max and min. Addition is
//              excluded: integers wrap, and -inf, the neutral value, plus inf is NaN
//   product    multiplicative functions
//
// Sums are the exception: a rank's part of a sum may be zero, and 0 * inf and 0 / 0 are NaN.
//
// Types without an order (complex) have no partials of max and min, so these rows are never used.
// Gradients of broadcast operands are summed when they are accumulated, not here. Gradients of
// complex operands are conjugated, as in PyTorch: the steepest ascent of a real loss.
#pragma once

#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/element_functions.hpp>
#include <cleave/ops/engine/call_op.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The element types that a function is defined on.
enum class Elements {
  ordered,    ///< real numbers, integers, bools
  fractions,  ///< real and complex numbers
  real,
  divisible,  ///< real numbers and integers
};

template <Elements Kind>
struct ElementwiseOn : Elementwise {
  static constexpr Elements defined_on = Kind;
};

/// Base of a function F of one element, `value(x)`. 16-bit floats are computed in float.
template <Elements Kind, class F>
struct FunctionOn : ElementwiseOn<Kind> {
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& x) const {
    return T(static_cast<const F&>(*this).value(accumulator_t<T>(x)));
  }
};

}  // namespace ops

template <class Y>
struct Out;

namespace detail {

/// Whether X.. are N operands, at least one of them a tensor, with or without `out(y)` before them.
template <int N, class... X>
inline constexpr bool are_arguments =
    int(sizeof...(X)) == N && (AnyOperand<X> && ...) && (AnyTensor<X> || ...);
template <int N, class Y, class... X>
inline constexpr bool are_arguments<N, Out<Y>, X...> = are_arguments<N, X...>;
template <int N, class... X>
concept ArgumentsOf = are_arguments<N, X...>;

template <class Request, class Op, class Y, class... X>
constexpr void write_into(const Y& y, const Op& op, const X&... x);

/// Whether a number of type N may become a T: its kind is not wider (integer < real < complex).
template <class T, class N>
constexpr bool is_number_for() {
  constexpr auto kind = []<class A>(const A*) {
    return is_complex<A> ? 2 : std::is_integral_v<A> ? 0 : 1;
  };
  return kind(static_cast<const N*>(nullptr)) <= kind(static_cast<const T*>(nullptr));
}

/// Converts a number to another element type.
template <class To, class From>
CLEAVE_HOST_DEVICE constexpr To converted(const From& a) {
  using F = accumulator_t<From>;
  using T = accumulator_t<To>;
  if constexpr (std::is_same_v<From, To>) return a;
  else if constexpr (is_complex<F> && is_complex<T>)
    return To(kernels::real_t<T>(a.real()), kernels::real_t<T>(a.imag()));
  else if constexpr (is_complex<T>) return To(kernels::real_t<T>(F(a)));
  else if constexpr (std::is_same_v<To, bool>) return F(a) != F(0);
  else return To(T(F(a)));
}

/// Returns a tensor unchanged, a number converted to T.
template <class T, class X>
constexpr decltype(auto) same_type(const X& x) {
  if constexpr (AnyTensor<X>) {
    static_assert(std::is_same_v<typename X::value_type, T>,
                  "cleave: the operands have different element types; cast one of them");
    return (x);
  } else {
    static_assert(is_number_for<T, X>(),
                  "cleave: the number next to a tensor is of a wider kind (integer < real < "
                  "complex); cast the tensor");
    return converted<T>(x);
  }
}

/// Requires that an operation is defined on elements of type T.
template <class Op, class T>
constexpr void require_elements() {
  if constexpr (requires { Op::defined_on; }) {
    using ops::Elements;
    static_assert(Op::defined_on != Elements::ordered || !is_complex<T>,
                  "cleave: complex numbers have no order");
    static_assert(Op::defined_on != Elements::fractions || !std::is_integral_v<T>,
                  "cleave: this function is defined on real and complex numbers; cast first");
    static_assert(Op::defined_on != Elements::real || (!std::is_integral_v<T> && !is_complex<T>),
                  "cleave: this function is defined on real numbers; cast first");
    static_assert(
        Op::defined_on != Elements::divisible || (!is_complex<T> && !std::is_same_v<T, bool>),
        "cleave: this division requires a real or integer element type");
  }
}

template <class X>
constexpr void require_real() {
  using T = typename X::value_type;
  static_assert(!std::is_integral_v<T> && !is_complex<T>,
                "cleave: this operation requires a real floating-point element type");
}

/// Calls an elementwise operation on operands of one element type.
template <class... R, class Op, class... X>
constexpr auto pointwise(const Op& op, const X&... x) {
  using T = element_of<X...>;
  require_elements<Op, T>();
  return call_as(Request<R...>{}, op, same_type<T>(x)...);
}
/// The same with `out(y)` before the operands. @see into.hpp
template <class... R, class Op, class Y, class... X>
constexpr const Y& pointwise(const Op& op, const Out<Y>& y, const X&... x) {
  using T = element_of<X...>;
  require_elements<Op, T>();
  write_into<Request<R...>>(y.target, op, as_operand(same_type<T>(x))...);
  return y.target;
}

/// The `partials` rows of a nondecreasing function.
inline constexpr const char* never_falls = "max->max; min->min";

}  // namespace detail

}  // namespace cleave::inline v0
