// Copies, functors, products and operators into an existing tensor: copy_(y, x), map_(f, x, y),
// matmul(out(y), a, b), x += y. Elementwise operations have these forms by their registration.
// @see into.hpp for the requirements on a target
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/products/matmul.hpp>

namespace cleave::inline v0 {

namespace ops {

struct Copy : Redistribute {
  static constexpr const char* name = "copy_";
  static constexpr bool is_placement = false;
};

}  // namespace ops

/// Copies the elements of x to y, which may share elements.
///
/// @param x      with the element type, extents and placements of y; in a trace its placements may
///               differ: a program redistributes it to those of an argument that it changes
/// @return       y
/// @collective   none
/// @throws Error if x and y differ in extents or mesh, or y repeats elements
template <AnyTensor Y, AnyTensor X>
constexpr const Y& copy_(const Y& y, const X& x) {
  return call_op(out(y), ops::Copy{}, x);
}

/// Updates x in one pass: x[i] = f(x[i], y[i], ..).
///
///     map_([](float p, float g) { return p - 0.1f * g; }, weights, gradient);
///
/// @see map
template <class F, AnyTensor X, AnyOperand... Y>
constexpr const X& map_(const F& f, const X& x, const Y&... y) {
  return call_op(out(x), ops::Map<F>{{}, f}, x, y...);
}
template <class F, class Y, AnyOperand... X>
constexpr const Y& map(const Out<Y>& y, const F& f, const X&... x) {
  return call_op(y, ops::Map<F>{{}, f}, x...);
}

template <class Y, AnyTensor A>
constexpr const Y& conj(const Out<Y>& y, const A& a) {
  return detail::pointwise(ops::Conj{}, y, a);
}
template <class Y, AnyTensor A, AnyTensor B>
constexpr const Y& matmul(const Out<Y>& y, const A& a, const B& b) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul into a tensor takes two matrices");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  return call_op(y, ops::Matmul{}, a, b);
}

/// `x += y` is `add_(x, y)`; the others likewise. x may be a view: `x.select(0, i) *= 2`.
template <AnyTensor X, AnyOperand Y>
constexpr const X& operator+=(const X& x, const Y& y) {
  return add_(x, y);
}
template <AnyTensor X, AnyOperand Y>
constexpr const X& operator-=(const X& x, const Y& y) {
  return sub_(x, y);
}
template <AnyTensor X, AnyOperand Y>
constexpr const X& operator*=(const X& x, const Y& y) {
  return mul_(x, y);
}
template <AnyTensor X, AnyOperand Y>
constexpr const X& operator/=(const X& x, const Y& y) {
  return div_(x, y);
}

}  // namespace cleave::inline v0
