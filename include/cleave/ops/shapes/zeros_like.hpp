// Arrays with the extents, the element type and the placements of another.
//
//     // y[S0,R] = zeros_like(x[S0,P])
#pragma once

#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class T, int Rank, class Device>
Tensor<T, Rank, Device> made_like(const Tensor<T, Rank, Device>& x) {
  return Tensor<T, Rank, Device>(x.shape());
}
template <class T, int Rank, class Mesh, class P>
auto made_like(const DTensor<T, Rank, Mesh, P>& x) {
  using Y = DTensor<T, Rank, Mesh, without_partials_t<P>>;
  return Y::unchecked(made_like(x.to_local()), x.mesh(), x.shape(), x.actual_layout());
}

/// Makes an array like x, filled with a number; specialised for traced values.
template <class X>
struct FilledLike {
  static X make(const X& x, const typename X::value_type&) {
    static_assert(sizeof(X*) == 0, "cleave: *_like requires a Tensor, a DTensor or a traced value");
    return x;
  }
};

}  // namespace detail

/// An uninitialised array with the extents, the element type and the placements of x, where Partial
/// becomes Replicate. It does not track gradients.
///
/// @collective none
template <AnyTensor X>
auto empty_like(const X& x) {
  using Y = std::remove_cvref_t<decltype(detail::innermost(x))>;
  static_assert(
      is_tensor<Y> || is_dtensor<Y>,
      "cleave: empty_like requires a Tensor or a DTensor; a traced value has no elements");
  return detail::made_like(detail::innermost(x));
}

/// An array filled with `value`. Otherwise as empty_like.
template <AnyTensor X>
constexpr auto full_like(const X& x, const typename X::value_type& value) {
  using Y = detail::innermost_t<X>;
  if constexpr (is_dtensor<Y> || is_tensor<Y>) {
    auto y = empty_like(x);
    if constexpr (is_dtensor<Y>) y.to_local().fill_(value);
    else y.fill_(value);
    return y;
  } else {
    return detail::FilledLike<Y>::make(detail::innermost(x), value);
  }
}

/// An array of zeros. Otherwise as empty_like.
template <AnyTensor X>
constexpr auto zeros_like(const X& x) {
  return full_like(x, typename X::value_type(0));
}

/// An array of ones. Otherwise as empty_like.
template <AnyTensor X>
constexpr auto ones_like(const X& x) {
  return full_like(x, typename X::value_type(1));
}

CLEAVE_USAGE(empty_like, "empty_like(x)")
CLEAVE_USAGE(full_like, "full_like(x, value)")
CLEAVE_USAGE(ones_like, "ones_like(x)")
CLEAVE_USAGE(zeros_like, "zeros_like(x)")

}  // namespace cleave::inline v0
