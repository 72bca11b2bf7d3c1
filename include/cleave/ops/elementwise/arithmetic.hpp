// Elementwise arithmetic: add, sub, mul, div, neg, square, abs, sign, maximum, minimum, conj, real.
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/elementwise.hpp>

namespace cleave {

template <class... R, AnyOperand A>
constexpr auto conj(const A& a);

namespace ops {

/// 1 where a is 0, 0 elsewhere.
struct IsZero : Elementwise {
  static constexpr const char* name = "is_zero";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a == T(0) ? T(1) : T(0);
  }
};

/// a, but 1 where a is 0.
struct OrOne : Elementwise {
  static constexpr const char* name = "or_one";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a == T(0) ? T(1) : a;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return mul(g, sub(1, call_op(IsZero{}, x)));
  }
};

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
    return div(sub(g, mul(cast<T>(real(mul(conj(g), y))), y)), call_op(OrOne{}, cast<T>(abs(x))));
  }
};

/// 1 where a > b, 1/2 where a == b, 0 elsewhere: the derivative of maximum(a, b) in a.
struct ShareOfLarger : Elementwise {
  static constexpr const char* name = "share_of_larger";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a > b ? T(1) : a == b ? T(0.5) : T(0);
  }
};

/// Propagates NaNs. Where the operands are equal, each receives half the gradient.
struct Maximum : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "maximum";
  static constexpr const char* partials =
      "max,max->max; max,R->max; R,max->max; min,R->min; R,min->min";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::larger(a, b);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, call_op(ShareOfLarger{}, a, b));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, call_op(ShareOfLarger{}, b, a));
  }
};

struct Minimum : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "minimum";
  static constexpr const char* partials =
      "min,min->min; min,R->min; R,min->min; max,R->max; R,max->max";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return kernels::smaller(a, b);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, call_op(ShareOfLarger{}, b, a));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, call_op(ShareOfLarger{}, a, b));
  }
};

struct Conj : Elementwise {
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
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) add(const A&... a) {
  return detail::pointwise<R...>(ops::Add{}, a...);
}

/// a - b. `// y[P] = a[P] - b[P]`
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) sub(const A&... a) {
  return detail::pointwise<R...>(ops::Sub{}, a...);
}

/// a · b, element by element. `// y[P] = a[P] · b[R]`
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) mul(const A&... a) {
  return detail::pointwise<R...>(ops::Mul{}, a...);
}

/// a / b; integer division truncates. `// y[P] = a[P] / b[R]`
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) div(const A&... a) {
  return detail::pointwise<R...>(ops::Div{}, a...);
}

/// The larger of a and b, element by element; NaN where a or b is NaN.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) maximum(const A&... a) {
  return detail::pointwise<R...>(ops::Maximum{}, a...);
}

/// The smaller of a and b, element by element; NaN where a or b is NaN.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) minimum(const A&... a) {
  return detail::pointwise<R...>(ops::Minimum{}, a...);
}

/// -a. `// y[P] = -a[P]`
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) neg(const A&... a) {
  return detail::pointwise<R...>(ops::Neg{}, a...);
}

/// |a|; real for complex a.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) abs(const A&... a) {
  return detail::pointwise<R...>(ops::Abs{}, a...);
}

/// The sign of a: a / |a|, 0 where a is 0, NaN where a is NaN.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) sign(const A&... a) {
  return detail::pointwise<R...>(ops::Sign{}, a...);
}

/// a · a
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) square(const A&... a) {
  return detail::pointwise<R...>(ops::Square{}, a...);
}

/// The complex conjugate; a real operand is returned unchanged.
template <class... R, AnyOperand A>
constexpr auto conj(const A& a) {
  if constexpr (!AnyTensor<A>) return ops::Conj{}(a);
  else if constexpr (!is_complex<typename A::value_type>) return detail::waited(a);
  else return detail::pointwise<R...>(ops::Conj{}, a);
}

/// The real part; real operands keep their values.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) real(const A&... a) {
  return detail::pointwise<R...>(ops::Real{}, a...);
}

template <class A, TensorAndOther<A> B>
constexpr auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator/(const A& a, const B& b) {
  return div(a, b);
}
template <AnyTensor A>
constexpr auto operator-(const A& a) {
  return neg(a);
}

}  // namespace cleave
