// Trigonometric and hyperbolic functions and their inverses, element by element.
#pragma once

#include <cmath>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/powers.hpp>
#include <cleave/ops/elementwise/real_function.hpp>

namespace cleave::inline v0 {

namespace ops {

struct Sin : FunctionOn<Elements::fractions, Sin> {
  static constexpr const char* name = "sin";
  static constexpr auto row_function = kernels::RowFunctionId::sin;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::sine(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(g, conj(cos(x)));
  }
};

struct Cos : FunctionOn<Elements::fractions, Cos> {
  static constexpr const char* name = "cos";
  static constexpr auto row_function = kernels::RowFunctionId::cos;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::cosine(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return neg(mul(g, conj(sin(x))));
  }
};

struct Tan : FunctionOn<Elements::fractions, Tan> {
  static constexpr const char* name = "tan";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::tangent(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return mul(g, conj(add(square(y), 1)));
  }
};

struct Sinh : FunctionOn<Elements::fractions, Sinh> {
  static constexpr const char* name = "sinh";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::hyperbolic_sine(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(g, conj(cosh(x)));
  }
};

struct Cosh : FunctionOn<Elements::fractions, Cosh> {
  static constexpr const char* name = "cosh";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::hyperbolic_cosine(x); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(g, conj(sinh(x)));
  }
};

struct Asin : RealFunction<Asin> {
  static constexpr const char* name = "asin";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::asin(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::sqrt;
    return T(1) / sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Acos : RealFunction<Acos> {
  static constexpr const char* name = "acos";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::acos(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) { return -Asin::slope(x); }
};

struct Atan : RealFunction<Atan> {
  static constexpr const char* name = "atan";
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::atan(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) { return 1 / (1 + x * x); }
};

struct Asinh : RealFunction<Asinh> {
  static constexpr const char* name = "asinh";
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::asinh(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::sqrt;
    return T(1) / sqrt(x * x + T(1));
  }
};

struct Acosh : RealFunction<Acosh> {
  static constexpr const char* name = "acosh";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::acosh(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::sqrt;
    return T(1) / sqrt((x - T(1)) * (x + T(1)));
  }
};

struct Atanh : RealFunction<Atanh> {
  static constexpr const char* name = "atanh";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::atanh(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) { return 1 / ((1 - x) * (1 + x)); }
};

/// The angle of the point (b, a).
struct Atan2 : ElementwiseOn<Elements::real> {
  static constexpr const char* name = "atan2";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    return T(std::atan2(A(a), A(b)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, div(b, squares(a, b)));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto& b) {
    return neg(mul(g, div(a, squares(a, b))));
  }

 private:
  static constexpr auto squares(const auto& a, const auto& b) { return square(hypot(a, b)); }
};

}  // namespace ops

/// The sine; angles are in radians.
CLEAVE_UNARY(trigonometry, sin, Sin)
/// The cosine.
CLEAVE_UNARY(trigonometry, cos, Cos)
/// The tangent.
CLEAVE_UNARY(trigonometry, tan, Tan)
/// The inverse sine; NaN outside [-1, 1].
CLEAVE_UNARY(trigonometry, asin, Asin)
/// The inverse cosine; NaN outside [-1, 1].
CLEAVE_UNARY(trigonometry, acos, Acos)
/// The inverse tangent.
CLEAVE_UNARY(trigonometry, atan, Atan)
/// The hyperbolic sine.
CLEAVE_UNARY(trigonometry, sinh, Sinh)
/// The hyperbolic cosine.
CLEAVE_UNARY(trigonometry, cosh, Cosh)
/// The inverse hyperbolic sine.
CLEAVE_UNARY(trigonometry, asinh, Asinh)
/// The inverse hyperbolic cosine; NaN below 1.
CLEAVE_UNARY(trigonometry, acosh, Acosh)
/// The inverse hyperbolic tangent; NaN outside [-1, 1].
CLEAVE_UNARY(trigonometry, atanh, Atanh)
/// The angle of the point (b, a) from the positive first axis, between -pi and pi.
CLEAVE_BINARY(trigonometry, atan2, Atan2)

}  // namespace cleave::inline v0
