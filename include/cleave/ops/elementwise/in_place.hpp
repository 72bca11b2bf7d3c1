// Elementwise operations in place, `add_(x, y)`, and into an existing tensor, `add(out(y), a, b)`.
// @see into.hpp for the requirements on a target
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/products/matmul.hpp>

namespace cleave {

/// `add_(x, y)`: x = x + y; the others likewise. y may be a number, and may broadcast along x.
inline constexpr detail::InPlace<ops::Add> add_;
inline constexpr detail::InPlace<ops::Sub> sub_;
inline constexpr detail::InPlace<ops::Mul> mul_;
inline constexpr detail::InPlace<ops::Div> div_;
inline constexpr detail::InPlace<ops::Maximum> maximum_;
inline constexpr detail::InPlace<ops::Minimum> minimum_;
inline constexpr detail::InPlace<ops::Pow> pow_;
inline constexpr detail::InPlace<ops::Hypot> hypot_;
inline constexpr detail::InPlace<ops::Atan2> atan2_;
inline constexpr detail::InPlace<ops::Fmod> fmod_;
inline constexpr detail::InPlace<ops::Remainder> remainder_;
inline constexpr detail::InPlace<ops::LogicalAnd> logical_and_;
inline constexpr detail::InPlace<ops::LogicalOr> logical_or_;
inline constexpr detail::InPlace<ops::LogicalXor> logical_xor_;

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
inline constexpr detail::InPlace<ops::Reciprocal> reciprocal_;
inline constexpr detail::InPlace<ops::Rsqrt> rsqrt_;
inline constexpr detail::InPlace<ops::Exp2> exp2_;
inline constexpr detail::InPlace<ops::Expm1> expm1_;
inline constexpr detail::InPlace<ops::Log1p> log1p_;
inline constexpr detail::InPlace<ops::Log2> log2_;
inline constexpr detail::InPlace<ops::Log10> log10_;
inline constexpr detail::InPlace<ops::Sin> sin_;
inline constexpr detail::InPlace<ops::Cos> cos_;
inline constexpr detail::InPlace<ops::Tan> tan_;
inline constexpr detail::InPlace<ops::Asin> asin_;
inline constexpr detail::InPlace<ops::Acos> acos_;
inline constexpr detail::InPlace<ops::Atan> atan_;
inline constexpr detail::InPlace<ops::Sinh> sinh_;
inline constexpr detail::InPlace<ops::Cosh> cosh_;
inline constexpr detail::InPlace<ops::Asinh> asinh_;
inline constexpr detail::InPlace<ops::Acosh> acosh_;
inline constexpr detail::InPlace<ops::Atanh> atanh_;
inline constexpr detail::InPlace<ops::Erf> erf_;
inline constexpr detail::InPlace<ops::Erfc> erfc_;
inline constexpr detail::InPlace<ops::Gelu> gelu_;
inline constexpr detail::InPlace<ops::GeluTanh> gelu_tanh_;
inline constexpr detail::InPlace<ops::Silu> silu_;
inline constexpr detail::InPlace<ops::Mish> mish_;
inline constexpr detail::InPlace<ops::LogSigmoid> logsigmoid_;
inline constexpr detail::InPlace<ops::Softsign> softsign_;
inline constexpr detail::InPlace<ops::Hardsigmoid> hardsigmoid_;
inline constexpr detail::InPlace<ops::Hardswish> hardswish_;
inline constexpr detail::InPlace<ops::Floor> floor_;
inline constexpr detail::InPlace<ops::Ceil> ceil_;
inline constexpr detail::InPlace<ops::Round> round_;
inline constexpr detail::InPlace<ops::Trunc> trunc_;
inline constexpr detail::InPlace<ops::Frac> frac_;
inline constexpr detail::InPlace<ops::LogicalNot> logical_not_;

/// `clamp_(x, low, high)`, `lerp_(x, y, weight)`: likewise.
inline constexpr detail::InPlace<ops::Clamp> clamp_;
inline constexpr detail::InPlace<ops::Lerp> lerp_;

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

template <class Y, AnyTensor A>
const Y& conj(const Out<Y>& y, const A& a) {
  return detail::pointwise(ops::Conj{}, y, a);
}
template <class Y, AnyTensor A, AnyTensor B>
const Y& matmul(const Out<Y>& y, const A& a, const B& b) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul into a tensor takes two matrices");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  return call_op(y, ops::Matmul{}, a, b);
}

/// `x += y` is `add_(x, y)`; the others likewise. x may be a view: `x.select(0, i) *= 2`.
template <AnyTensor X, AnyOperand Y>
const X& operator+=(const X& x, const Y& y) {
  return add_(x, y);
}
template <AnyTensor X, AnyOperand Y>
const X& operator-=(const X& x, const Y& y) {
  return sub_(x, y);
}
template <AnyTensor X, AnyOperand Y>
const X& operator*=(const X& x, const Y& y) {
  return mul_(x, y);
}
template <AnyTensor X, AnyOperand Y>
const X& operator/=(const X& x, const Y& y) {
  return div_(x, y);
}

}  // namespace cleave
