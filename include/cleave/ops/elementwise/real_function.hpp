// Functions of one element, and functions of one real element that define their derivative: one
// pass forward, one pass backward.
#pragma once

#include <cleave/kernels/dual.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The row function that computes the derivative of F; false if F declares none.
template <class F>
constexpr auto slope_row_function_of() {
  if constexpr (requires { F::slope_row_function; }) return F::slope_row_function;
  else return false;
}

/// The derivative of a function F of one element, with the attributes of F. `F::slope` takes dual
/// numbers, so that Slope has a slope, too.
template <class F>
struct Slope : F {  // not a member: a second Elementwise in one object would pad it
  static constexpr const char* name = "slope";
  static constexpr const char* partials = "";
  static constexpr auto row_function = slope_row_function_of<F>();
  static constexpr bool slope_row_function = false;  // not that of F

  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& x) const {
    return T(F::slope(accumulator_t<T>(x)));
  }
  template <class T>
  CLEAVE_HOST_DEVICE T slope(const T& x) const {
    return F::slope(kernels::Dual<T>(x, T(1))).slope;
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return mul(g, call_as(Request<>{}, Slope<Slope>{*this}, x));
  }
};

}  // namespace detail

namespace ops {

/// Base of a function F of one real element. F has `value(x)` and its derivative `slope(x)`, which
/// must also take dual numbers.
template <class F>
struct RealFunction : FunctionOn<Elements::real, F> {
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    const detail::Slope<F> slope{static_cast<const F&>(*this)};
    return mul(g, detail::call_as(detail::Request<>{}, slope, x));
  }
};

}  // namespace ops

}  // namespace cleave::inline v0
