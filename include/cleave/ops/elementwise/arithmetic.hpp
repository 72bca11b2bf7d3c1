// Elementwise arithmetic: add, sub, mul, div, neg, square, abs, sign, maximum, minimum, conj, real.
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/registration.hpp>

namespace cleave::inline v0 {

template <class... R, AnyOperand A>
constexpr auto conj(const A& a);

namespace detail {

/// 1 where a is 0, 0 elsewhere.
struct IsZero : Elementwise {
  static constexpr const char* constant = ops::piecewise_constant;
  static constexpr const char* name = "is_zero";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a == T(0) ? T(1) : T(0);
  }
};

/// a, but 1 where a is 0.
struct OrOne : Elementwise {
  using verified = ops::RealComplexWhole;
  static constexpr const char* name = "or_one";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a == T(0) ? T(1) : a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(g, sub(1, call_op(IsZero{}, x)));
  }
};

/// 1 where a > b, 1/2 where a == b, 0 elsewhere: the derivative of maximum(a, b) in a.
struct ShareOfLarger : Elementwise {
  static constexpr const char* constant = ops::piecewise_constant;
  using verified = Types<double, float>;
  static constexpr const char* name = "share_of_larger";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a > b ? T(1) : a == b ? T(0.5) : T(0);
  }
};

}  // namespace detail

namespace ops {

struct Add : Elementwise {
  static constexpr const char* name = "add";
  template <class T, class>
  static constexpr const char* partials_for() {
    return std::is_integral_v<T> ? "sum,sum->sum"
                                 : "sum,sum->sum; avg,avg->avg; avg,R->avg; R,avg->avg";
  }
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::plus(a, b);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&...) {
    return g;
  }
};

struct Sub : Elementwise {
  static constexpr const char* name = "sub";
  template <class T, class>
  static constexpr const char* partials_for() {
    return std::is_same_v<T, bool> ? ""
           : std::is_integral_v<T> ? "sum,sum->sum"
                                   : "sum,sum->sum; avg,avg->avg; avg,R->avg; R,avg->avg";
  }
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::minus(a, b);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&...) { return neg(g); }
};

struct Mul : Elementwise {
  static constexpr const char* name = "mul";
  static constexpr const char* partials =
      "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg; product,product->product";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::times(a, b);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& b) {
    return mul(g, conj(b));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) {
    return mul(g, conj(a));
  }
};

/// Integer division truncates, hence is not linear in partial operands.
struct Div : Elementwise {
  using verified = RealComplexWhole;
  static constexpr const char* name = "div";
  template <class T, class>
  static constexpr const char* partials_for() {
    return std::is_integral_v<T> ? "" : "sum,R->sum; avg,R->avg; product,product->product";
  }
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::quotient(a, b);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& b) {
    return div(g, conj(b));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto& y, const auto&, const auto& b) {
    return neg(div(mul(g, conj(y)), conj(b)));
  }
};

struct Neg : Elementwise {
  static constexpr const char* name = "neg";
  template <class T>
  static constexpr const char* partials_for() {
    return std::is_integral_v<T> ? "sum->sum" : "sum->sum; avg->avg; max->min; min->max";
  }
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    if constexpr (std::is_integral_v<T>) return kernels::minus(T(0), a);
    else if constexpr (is_complex<T>) return T(-a.real(), -a.imag());
    else return T(-accumulator_t<T>(a));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return neg(g); }
};

struct Square : Elementwise {
  using verified = RealComplexWhole;
  static constexpr const char* name = "square";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return kernels::times(a, a);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(mul(g, conj(x)), 2);
  }
};

/// The magnitude; real for complex operands.
struct Abs : Elementwise {
  using verified = RealComplexWhole;
  static constexpr const char* name = "abs";
  template <class T>
  CLEAVE_HOST_DEVICE kernels::real_t<T> operator()(const T& a) const {
    return kernels::magnitude(a);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    return mul(cast<T>(g), sign(x));
  }
};

/// x / |x|, 0 for 0, NaN for NaN. Piecewise constant for real operands, hence without a gradient.
struct Sign : Elementwise {
  static constexpr const char* constant = "piecewise constant for real numbers";
  using verified = RealComplexWhole;
  static constexpr const char* name = "sign";
  template <class T>
  static constexpr const char* partials_for() {
    return is_complex<T> ? "" : "max->max; min->min; product->product";
  }
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    if constexpr (is_complex<T>) {
      const auto size = kernels::magnitude(a);
      return size == 0 ? a : T(a.real() / size, a.imag() / size);
    } else {
      return a > T(0) ? T(1) : a < T(0) ? T(T(0) - T(1)) : a == T(0) ? T(0) : a;
    }
  }
  // only the component of g that rotates y contributes, not the component that scales x
  template <class G, class Y, class X>
    requires is_complex<typename X::value_type>
  static constexpr auto gradient(wrt<0>, const G& g, const Y& y, const X& x) {
    using T = typename X::value_type;
    return div(sub(g, mul(cast<T>(real(mul(conj(g), y))), y)),
               call_op(detail::OrOne{}, cast<T>(abs(x))));
  }
};

/// Propagates NaNs. Where the operands are equal, each receives half the gradient.
template <bool IsLarger>
struct Extreme : ElementwiseOn<Elements::ordered> {
  using verified = Types<double, float, std::int64_t, bool>;
  static constexpr const char* name = IsLarger ? "maximum" : "minimum";
  static constexpr const char* partials =
      IsLarger ? "max,max->max; max,R->max; R,max->max; min,R->min; R,min->min"
               : "min,min->min; min,R->min; R,min->min; max,R->max; R,max->max";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return IsLarger ? kernels::larger(a, b) : kernels::smaller(a, b);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&, const auto& a, const auto& b) {
    if constexpr (IsLarger == (I == 0)) return mul(g, call_op(detail::ShareOfLarger{}, a, b));
    else return mul(g, call_op(detail::ShareOfLarger{}, b, a));
  }
};
using Maximum = Extreme<true>;
using Minimum = Extreme<false>;

/// 1 where a == b, 0 elsewhere.
struct Equals : Elementwise {
  static constexpr const char* constant = piecewise_constant;
  static constexpr const char* name = "equals";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a == b || (kernels::is_nan(a) && kernels::is_nan(b)) ? T(1) : T(0);
  }
};

struct Conj : Elementwise {
  using verified = Types<std::complex<double>>;
  static constexpr const char* name = "conj";
  static constexpr const char* partials = "sum->sum; avg->avg; product->product";
  template <class T>
  CLEAVE_HOST_DEVICE constexpr T operator()(const T& a) const {
    if constexpr (is_complex<T>) return T(a.real(), -a.imag());
    else return a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return conj(g); }
};

struct Real : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* name = "real";
  static constexpr const char* partials = "sum->sum; avg->avg";
  template <class T>
  CLEAVE_HOST_DEVICE kernels::real_t<T> operator()(const T& a) const {
    if constexpr (is_complex<T>) return a.real();
    else return a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    return cast<T>(g);
  }
};

}  // namespace ops

/// a + b. `// y[P] = a[P] + b[P]`
CLEAVE_OPERATOR(arithmetic, add, Add, +)
/// a - b. `// y[P] = a[P] - b[P]`
CLEAVE_OPERATOR(arithmetic, sub, Sub, -)
/// a · b, element by element. `// y[P] = a[P] · b[R]`
CLEAVE_OPERATOR(arithmetic, mul, Mul, *)
/// a / b; integer division truncates. `// y[P] = a[P] / b[R]`
CLEAVE_OPERATOR(arithmetic, div, Div, /)
/// The larger of a and b, element by element; NaN where a or b is NaN.
CLEAVE_BINARY(arithmetic, maximum, Maximum)
/// The smaller of a and b, element by element; NaN where a or b is NaN.
CLEAVE_BINARY(arithmetic, minimum, Minimum)
/// 1 where a equals b (or both are NaN), 0 elsewhere, in their element type.
CLEAVE_BINARY(arithmetic, equals, Equals)
/// -a. `// y[P] = -a[P]`
CLEAVE_ELEMENTWISE(unary_arithmetic, neg, Neg, 1, "neg(a)", "-x", neg(x...))
/// a · a
CLEAVE_UNARY(unary_arithmetic, square, Square)
/// |a|; real for complex a.
CLEAVE_UNARY(unary_arithmetic, abs, Abs)
/// The sign of a: a / |a|, 0 where a is 0, NaN where a is NaN.
CLEAVE_UNARY(unary_arithmetic, sign, Sign)
/// The complex conjugate; a real operand is returned unchanged.
template <class... R, AnyOperand A>
constexpr auto conj(const A& a) {
  if constexpr (!AnyTensor<A>) return ops::Conj{}(a);
  else if constexpr (!is_complex<typename A::value_type>) return detail::waited(a);
  else return detail::pointwise<R...>(ops::Conj{}, a);
}
CLEAVE_REGISTER(unary_arithmetic, conj, Conj, 1, "conj(a)", "conj(x)", conj(x...))
/// The real part; real operands keep their values.
CLEAVE_UNARY(unary_arithmetic, real, Real)

CLEAVE_HELPER(arithmetic, ShareOfLarger, 2)
CLEAVE_HELPER(unary_arithmetic, IsZero, 1)
CLEAVE_HELPER(unary_arithmetic, OrOne, 1)

template <AnyTensor A>
constexpr auto operator-(const A& a) {
  return neg(a);
}

}  // namespace cleave::inline v0
