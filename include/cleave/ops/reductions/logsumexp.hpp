// Logarithms of sums of exponentials over dimensions.
//
//     // y[R] = logsumexp(x[S0])      two all-reduces of one number per result, no gather
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/in_accumulator.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// a where it is finite, 0 where it is infinite or NaN.
struct FiniteOrZero : Elementwise {
  static constexpr const char* name = "finite_or_zero";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return a - a == T(0) ? a : T(0);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    return mul(g, equals(x, y));
  }
};

}  // namespace detail

namespace ops {

/// log(sum(exp(x))), shifted by the largest element to avoid overflow.
template <unsigned Mask>
struct LogSumExp : Composite {
  static constexpr const char* name = "logsumexp";
  static constexpr auto body(const auto& operand) {
    const auto x = resolve(operand);
    const auto shift = call_op(detail::FiniteOrZero{}, resolve(call_op(Reduce<Max, Mask>{}, x)));
    const auto total =
        resolve(call_op(Reduce<Sum, Mask>{}, exp(sub(x, broadcast_dims<Mask>(shift, x)))));
    return add(log(total), shift);
  }
  // dL/dx = g · softmax(x)
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& operand) {
    const auto x = resolve(operand);
    const auto shift = call_op(detail::FiniteOrZero{}, resolve(y));
    return mul(broadcast_dims<Mask>(g, x), exp(sub(x, broadcast_dims<Mask>(shift, x))));
  }
};

}  // namespace ops

/// log(sum(exp(x))) over all elements, or over the dimensions of a `dim`; -infinity if there are
/// none. If all elements are -infinity, so is the result, and its gradient is 0 (in PyTorch: NaN).
///
/// @collective every rank of the mesh, if x is Partial, or a reduced dimension is sharded: two
///             all-reduces of one number per result, for maxima and sums; nothing is gathered
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto logsumexp(const X& x, D = {}) {
  detail::require_real<X>();
  return detail::in_accumulator(x, [](const auto& v) {
    return call_op<R...>(ops::LogSumExp<detail::checked_mask<X, D>()>{}, v);
  });
}
CLEAVE_USAGE(logsumexp, "logsumexp(x), logsumexp(x, dim<0>{})")

}  // namespace cleave::inline v0
