// Elementwise operations in place, `add_(x, y)`, and into an existing tensor, `add(out(y), a, b)`.
// @see into.hpp for the requirements on a target
#pragma once

#include <type_traits>

#include <cleave/ops/into.hpp>
#include <cleave/ops/map.hpp>
#include <cleave/ops/matmul.hpp>
#include <cleave/ops/pointwise.hpp>

namespace cleave {

/// `add_(x, y)`: x = x + y; the others likewise. y may be a number, and may broadcast along x.
inline constexpr detail::InPlace<ops::Add> add_;
inline constexpr detail::InPlace<ops::Sub> sub_;
inline constexpr detail::InPlace<ops::Mul> mul_;
inline constexpr detail::InPlace<ops::Div> div_;
inline constexpr detail::InPlace<ops::Maximum> maximum_;
inline constexpr detail::InPlace<ops::Minimum> minimum_;

/// `neg_(x)`: x = -x; the others likewise.
inline constexpr detail::InPlace<ops::Neg> neg_;
inline constexpr detail::InPlace<ops::Abs> abs_;
inline constexpr detail::InPlace<ops::Sign> sign_;
inline constexpr detail::InPlace<ops::Square> square_;
inline constexpr detail::InPlace<ops::Conj> conj_;
inline constexpr detail::InPlace<ops::Relu> relu_;
inline constexpr detail::InPlace<ops::Exp> exp_;
inline constexpr detail::InPlace<ops::Log> log_;
inline constexpr detail::InPlace<ops::Sqrt> sqrt_;
inline constexpr detail::InPlace<ops::Tanh> tanh_;
inline constexpr detail::InPlace<ops::Sigmoid> sigmoid_;

/// Updates x in one pass: x[i] = f(x[i], y[i], ..).
///
///     map_([](float p, float g) { return p - 0.1f * g; }, weights, gradient);
///
/// @see map
template <class F, AnyTensor X, AnyOperand... Y>
const X& map_(const F& f, const X& x, const Y&... y) {
  return call_op(out(x), ops::Map<F>{{}, f}, x, y...);
}
template <class F, class Y, AnyOperand... X>
const Y& map(const Out<Y>& y, const F& f, const X&... x) {
  return call_op(y, ops::Map<F>{{}, f}, x...);
}

template <class Y, AnyOperand... X>
const Y& add(const Out<Y>& y, const X&... x) {
  return add_(y, x...);
}
template <class Y, AnyOperand... X>
const Y& sub(const Out<Y>& y, const X&... x) {
  return sub_(y, x...);
}
template <class Y, AnyOperand... X>
const Y& mul(const Out<Y>& y, const X&... x) {
  return mul_(y, x...);
}
template <class Y, AnyOperand... X>
const Y& div(const Out<Y>& y, const X&... x) {
  return div_(y, x...);
}
template <class Y, AnyTensor A, AnyTensor B>
const Y& matmul(const Out<Y>& y, const A& a, const B& b) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul into a tensor takes two matrices");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  return call_op(y, ops::Matmul{}, a, b);
}

template <AnyTensor X, AnyOperand Y>
X& operator+=(X& x, const Y& y) {
  add_(x, y);
  return x;
}
template <AnyTensor X, AnyOperand Y>
X& operator-=(X& x, const Y& y) {
  sub_(x, y);
  return x;
}
template <AnyTensor X, AnyOperand Y>
X& operator*=(X& x, const Y& y) {
  mul_(x, y);
  return x;
}
template <AnyTensor X, AnyOperand Y>
X& operator/=(X& x, const Y& y) {
  div_(x, y);
  return x;
}

}  // namespace cleave
