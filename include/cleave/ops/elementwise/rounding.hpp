// Rounding and remainders, element by element: floor, ceil, round, trunc, frac, fmod, remainder.
// Rounded values are piecewise constant and have no gradient.
#pragma once

#include <cmath>
#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/real_function.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Base of functions to whole numbers.
template <class F>
struct Rounding : FunctionOn<Elements::real, F> {
  static constexpr const char* constant = piecewise_constant;
  static constexpr const char* partials = detail::never_falls;
};

struct Floor : Rounding<Floor> {
  static constexpr const char* name = "floor";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::floor(x); }
};

struct Ceil : Rounding<Ceil> {
  static constexpr const char* name = "ceil";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::ceil(x); }
};

/// Rounds halves to even.
struct Round : Rounding<Round> {
  static constexpr const char* name = "round";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::rint(x); }
};

struct Trunc : Rounding<Trunc> {
  static constexpr const char* name = "trunc";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::trunc(x); }
};

/// a - trunc(a)
struct Frac : ElementwiseOn<Elements::real> {
  static constexpr const char* name = "frac";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(accumulator_t<T>(a) - std::trunc(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
};

/// a minus an integer multiple of b.
struct DivisionRest : ElementwiseOn<Elements::divisible> {
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto& y, const auto& a,
                                 const auto& b) {
    return neg(mul(g, round(div(sub(a, y), b))));  // the quotient is an integer, up to rounding
  }
};

/// a - trunc(a / b) · b: has the sign of a.
struct Fmod : DivisionRest {
  static constexpr const char* name = "fmod";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T>) return T(a % b);
    else return T(std::fmod(accumulator_t<T>(a), accumulator_t<T>(b)));
  }
};

/// a - floor(a / b) · b: has the sign of b, as % in Python.
struct Remainder : DivisionRest {
  static constexpr const char* name = "remainder";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    const A rest = A(Fmod{}(A(a), A(b)));
    return T(rest != A(0) && (rest < A(0)) != (A(b) < A(0)) ? A(rest + A(b)) : rest);
  }
};

}  // namespace ops

/// The largest integer not greater than a.
CLEAVE_UNARY(rounding, floor, Floor)
/// The smallest integer not less than a.
CLEAVE_UNARY(rounding, ceil, Ceil)
/// The nearest integer; halves are rounded to even.
CLEAVE_UNARY(rounding, round, Round)
/// a rounded towards zero.
CLEAVE_UNARY(rounding, trunc, Trunc)
/// The fractional part: a - trunc(a)
CLEAVE_UNARY(rounding, frac, Frac)
/// The remainder of a / b, with the quotient rounded towards zero; has the sign of a. Undefined for
/// integers if b is 0, as with %.
CLEAVE_BINARY(rounding, fmod, Fmod)
/// The remainder of a / b, with the quotient rounded down; has the sign of b. Undefined for
/// integers if b is 0, as with %.
CLEAVE_BINARY(rounding, remainder, Remainder)

}  // namespace cleave::inline v0
