// Elementary functions, element by element: relu, exp, log, sqrt, tanh, sigmoid.
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>

namespace cleave {

namespace ops {

/// b where a > 0, 0 elsewhere.
struct WherePositive : ElementwiseOn<Elements::ordered> {
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

/// Propagates NaNs.
struct Relu : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "relu";
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a < T(0) ? T(0) : a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return call_op(WherePositive{}, y, g);
  }
};

struct Exp : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "exp";
  static constexpr auto row_function = kernels::RowFunctionId::exp;
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::exponential(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(y));
  }
};

/// Increases where it is defined, but candidates of a maximum may be outside its domain: no rows.
struct Log : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "log";
  static constexpr auto row_function = kernels::RowFunctionId::log;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::logarithm(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return div(g, conj(x));
  }
};

struct Sqrt : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "sqrt";
  static constexpr auto row_function = kernels::RowFunctionId::sqrt;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::square_root(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return div(g, mul(conj(y), 2));
  }
};

struct Tanh : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "tanh";
  static constexpr auto row_function = kernels::RowFunctionId::tanh;
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::hyperbolic_tangent(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(sub(1, square(y))));
  }
};

struct Sigmoid : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "sigmoid";
  static constexpr auto row_function = kernels::RowFunctionId::sigmoid;
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::logistic(accumulator_t<T>(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(mul(y, sub(1, y))));
  }
};

}  // namespace ops

/// Rectified linear unit: max(a, 0)
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) relu(const A&... a) {
  return detail::pointwise<R...>(ops::Relu{}, a...);
}

/// The exponential function.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) exp(const A&... a) {
  return detail::pointwise<R...>(ops::Exp{}, a...);
}

/// The natural logarithm.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) log(const A&... a) {
  return detail::pointwise<R...>(ops::Log{}, a...);
}

/// The square root; NaN for negative real numbers.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) sqrt(const A&... a) {
  return detail::pointwise<R...>(ops::Sqrt{}, a...);
}

/// The hyperbolic tangent.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) tanh(const A&... a) {
  return detail::pointwise<R...>(ops::Tanh{}, a...);
}

/// The logistic function: 1 / (1 + exp(-a))
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) sigmoid(const A&... a) {
  return detail::pointwise<R...>(ops::Sigmoid{}, a...);
}

}  // namespace cleave
