// Elementary functions, element by element: relu, exp, log, sqrt, tanh, sigmoid.
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/registration.hpp>

namespace cleave::inline v0 {

namespace detail {

/// b where a > 0, 0 elsewhere.
struct WherePositive : ops::ElementwiseOn<ops::Elements::ordered> {
  using verified = Types<double, float, std::int64_t>;
  static constexpr const char* constant = "piecewise constant in a";
  static constexpr const char* name = "where_positive";
  static constexpr const char* partials = "R,sum->sum; R,avg->avg";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a > T(0) ? b : T(0);
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) {
    return call_op(WherePositive{}, a, g);
  }
};

}  // namespace detail

namespace ops {

/// Propagates NaNs.
struct Relu : ElementwiseOn<Elements::ordered> {
  using verified = Types<double, float, std::int64_t, bool>;
  static constexpr const char* name = "relu";
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a < T(0) ? T(0) : a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return call_op(detail::WherePositive{}, y, g);
  }
};

struct Exp : FunctionOn<Elements::fractions, Exp> {
  static constexpr const char* name = "exp";
  static constexpr auto row_function = kernels::RowFunctionId::exp;
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::exponential(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(y));
  }
};

/// Increases where it is defined, but candidates of a maximum may be outside its domain: no rows.
struct Log : FunctionOn<Elements::fractions, Log> {
  static constexpr const char* name = "log";
  static constexpr auto row_function = kernels::RowFunctionId::log;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::logarithm(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return div(g, conj(x));
  }
};

struct Sqrt : FunctionOn<Elements::fractions, Sqrt> {
  static constexpr const char* name = "sqrt";
  static constexpr auto row_function = kernels::RowFunctionId::sqrt;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::square_root(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return div(g, mul(conj(y), 2));
  }
};

struct Tanh : FunctionOn<Elements::fractions, Tanh> {
  static constexpr const char* name = "tanh";
  static constexpr auto row_function = kernels::RowFunctionId::tanh;
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::hyperbolic_tangent(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(sub(1, square(y))));
  }
};

struct Sigmoid : FunctionOn<Elements::fractions, Sigmoid> {
  static constexpr const char* name = "sigmoid";
  static constexpr auto row_function = kernels::RowFunctionId::sigmoid;
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::logistic(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(mul(y, sub(1, y))));
  }
};

}  // namespace ops

/// Rectified linear unit: max(a, 0)
CLEAVE_UNARY(functions, relu, Relu)
/// The exponential function.
CLEAVE_UNARY(functions, exp, Exp)
/// The natural logarithm.
CLEAVE_UNARY(functions, log, Log)
/// The square root; NaN for negative real numbers.
CLEAVE_UNARY(functions, sqrt, Sqrt)
/// The hyperbolic tangent.
CLEAVE_UNARY(functions, tanh, Tanh)
/// The logistic function: 1 / (1 + exp(-a))
CLEAVE_UNARY(functions, sigmoid, Sigmoid)
CLEAVE_HELPER(functions, WherePositive, 2)

}  // namespace cleave::inline v0
