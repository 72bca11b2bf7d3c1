// Named elementwise operations. Each is a map: one pass, broadcasting, numbers as operands.
//
// Operands have one element type; numbers are converted to it, if they do not lose their kind.
// Those that are linear keep a Partial operand partial, so that its reduction can wait.
// @see functors for which, map for the extents.
#pragma once

#include <type_traits>

#include <cleave/ops/map.hpp>
#include <cleave/ops/pointwise_functors.hpp>

namespace cleave {

namespace detail {

/// The element type of the first tensor among the operands.
template <class... X>
struct ElementOf {
  using type = void;
};
template <class First, class... Rest>
struct ElementOf<First, Rest...> : ElementOf<Rest...> {};
template <AnyTensor First, class... Rest>
struct ElementOf<First, Rest...> {
  using type = typename First::value_type;
};
template <class... X>
using element_of = typename ElementOf<X...>::type;

/// Whether a number may become a T without losing its kind: whole < real < complex.
template <class T, class Number>
constexpr bool is_number_for() {
  constexpr auto kind = []<class A>(const A*) {
    return is_complex<A> ? 2 : std::is_integral_v<A> ? 0 : 1;
  };
  return kind(static_cast<const Number*>(nullptr)) <= kind(static_cast<const T*>(nullptr));
}

/// A tensor as it is, a number as a T.
template <class T, class X>
decltype(auto) same_type(const X& x) {
  if constexpr (AnyTensor<X>) {
    static_assert(std::is_same_v<typename X::value_type, T>,
                  "cleave: the operands have different element types; cast one of them");
    return (x);
  } else {
    static_assert(is_number_for<T, X>(),
                  "cleave: the number next to a tensor is of a wider kind (whole < real < "
                  "complex); cast the tensor");
    return functors::Cast<X, T>{}(x);
  }
}

template <class Request, template <class> class F, class... X>
auto pointwise(const char* name, const X&... x) {
  using T = element_of<X...>;
  return map_named<Request>(name, F<T>{}, same_type<T>(x)...);
}

template <class T>
inline constexpr bool is_real_type = !std::is_integral_v<T> && !is_complex<T>;

template <class X, bool Ordered>
constexpr void require_kind() {
  using T = typename X::value_type;
  if constexpr (Ordered) static_assert(!is_complex<T>, "cleave: complex numbers have no order");
  else
    static_assert(!std::is_integral_v<T>,
                  "cleave: this function is defined on real and complex numbers; cast first");
}

}  // namespace detail

/// Two operands, at least one of them a tensor.
template <class A, class B>
concept TensorAndOther =
    (AnyTensor<A> && (AnyTensor<B> || ScalarElement<B>)) || (ScalarElement<A> && AnyTensor<B>);

/// a + b. `// y[P] = a[P] + b[P]`
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto add(const A& a, const B& b) {
  return detail::pointwise<detail::Request<R...>, functors::Add>("add", a, b);
}

/// a - b. `// y[P] = a[P] - b[P]`
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto sub(const A& a, const B& b) {
  return detail::pointwise<detail::Request<R...>, functors::Sub>("sub", a, b);
}

/// a · b, element by element. `// y[P] = a[P] · b[R]`
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto mul(const A& a, const B& b) {
  return detail::pointwise<detail::Request<R...>, functors::Mul>("mul", a, b);
}

/// a / b; integers are cut off. `// y[P] = a[P] / b[R]`
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto div(const A& a, const B& b) {
  return detail::pointwise<detail::Request<R...>, functors::Div>("div", a, b);
}

/// The larger of a and b; a NaN if there is one.
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto maximum(const A& a, const B& b) {
  static_assert(!is_complex<detail::element_of<A, B>>, "cleave: complex numbers have no order");
  return detail::pointwise<detail::Request<R...>, functors::Maximum>("maximum", a, b);
}

/// The smaller of a and b; a NaN if there is one.
template <class... R, class A, class B>
  requires TensorAndOther<A, B>
auto minimum(const A& a, const B& b) {
  static_assert(!is_complex<detail::element_of<A, B>>, "cleave: complex numbers have no order");
  return detail::pointwise<detail::Request<R...>, functors::Minimum>("minimum", a, b);
}

/// -a. `// y[P] = -a[P]`
template <class... R, AnyTensor A>
auto neg(const A& a) {
  return detail::pointwise<detail::Request<R...>, functors::Neg>("neg", a);
}

/// max(a, 0)
template <class... R, AnyTensor A>
auto relu(const A& a) {
  detail::require_kind<A, true>();
  return detail::pointwise<detail::Request<R...>, functors::Relu>("relu", a);
}

template <class... R, AnyTensor A>
auto exp(const A& a) {
  detail::require_kind<A, false>();
  return detail::pointwise<detail::Request<R...>, functors::Exp>("exp", a);
}

/// The natural logarithm.
template <class... R, AnyTensor A>
auto log(const A& a) {
  detail::require_kind<A, false>();
  return detail::pointwise<detail::Request<R...>, functors::Log>("log", a);
}

template <class... R, AnyTensor A>
auto sqrt(const A& a) {
  detail::require_kind<A, false>();
  return detail::pointwise<detail::Request<R...>, functors::Sqrt>("sqrt", a);
}

template <class... R, AnyTensor A>
auto tanh(const A& a) {
  detail::require_kind<A, false>();
  return detail::pointwise<detail::Request<R...>, functors::Tanh>("tanh", a);
}

/// 1 / (1 + exp(-a))
template <class... R, AnyTensor A>
auto sigmoid(const A& a) {
  detail::require_kind<A, false>();
  return detail::pointwise<detail::Request<R...>, functors::Sigmoid>("sigmoid", a);
}

/// |a|, a real number for complex a.
template <class... R, AnyTensor A>
auto abs(const A& a) {
  return detail::pointwise<detail::Request<R...>, functors::Abs>("abs", a);
}

/// a · a
template <class... R, AnyTensor A>
auto square(const A& a) {
  return detail::pointwise<detail::Request<R...>, functors::Square>("square", a);
}

/// a where the condition holds, b elsewhere; a or b may be numbers, at least one is a tensor.
template <class... R, AnyTensor C, class A, class B>
  requires TensorAndOther<A, B>
auto where(const C& condition, const A& a, const B& b) {
  static_assert(std::is_same_v<typename C::value_type, bool>,
                "cleave: the condition of where is a tensor of bool");
  using T = detail::element_of<A, B>;
  return detail::map_named<detail::Request<R...>>("where", functors::Where<T>{}, condition,
                                                  detail::same_type<T>(a), detail::same_type<T>(b));
}

/// Every element as a To. A Partial stays one where the cast cannot change the sum, or the order.
template <Element To, class... R, AnyTensor A>
auto cast(const A& a) {
  static_assert(!is_complex<typename A::value_type> || is_complex<To>,
                "cleave: a complex number is no real one; take its abs");
  return detail::map_named<detail::Request<R...>>("cast",
                                                  functors::Cast<typename A::value_type, To>{}, a);
}

template <class A, class B>
  requires(TensorAndOther<A, B> && (is_dtensor<A> || is_dtensor<B>))
auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <class A, class B>
  requires(TensorAndOther<A, B> && (is_dtensor<A> || is_dtensor<B>))
auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <class A, class B>
  requires(TensorAndOther<A, B> && (is_dtensor<A> || is_dtensor<B>))
auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <class A, class B>
  requires(TensorAndOther<A, B> && (is_dtensor<A> || is_dtensor<B>))
auto operator/(const A& a, const B& b) {
  return div(a, b);
}
template <class A>
  requires is_dtensor<A>
auto operator-(const A& a) {
  return neg(a);
}

}  // namespace cleave
