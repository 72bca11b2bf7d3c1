// Norms over dimensions: the sum of magnitudes, the root of the sum of squares, the largest
// magnitude.
//
//     // y[R] = norm(x[S0])      one all-reduce of one number per result
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

/// The order P of the maximum norm: the largest magnitude.
inline constexpr int norm_inf = 0;

namespace ops {

/// The P-norm over the dimensions of the mask: 1, 2 or norm_inf.
template <int P, unsigned Mask>
struct Norm : Composite {
  static_assert(P == 1 || P == 2 || P == norm_inf,
                "cleave: the order of a norm must be 1, 2 or norm_inf");
  static constexpr const char* name = "norm";
  static constexpr auto body(const auto& operand) {
    const auto x = resolve(operand);
    if constexpr (P == 1) return call_op(Reduce<Sum, Mask>{}, abs(x));
    else if constexpr (P == 2) return sqrt(resolve(call_op(Reduce<Sum, Mask>{}, square(x))));
    else return call_op(Reduce<Max, Mask>{}, abs(x));
  }
  // order 2: x / norm, 0 where the norm is 0; norm_inf: equal largest magnitudes share the gradient
  static constexpr auto gradient(wrt<0> at, const auto& g, const auto& y, const auto& operand) {
    const auto x = resolve(operand);
    if constexpr (P == 2)
      return mul(broadcast_dims<Mask>(div(g, call_op(detail::OrOne{}, resolve(y))), x), x);
    else if constexpr (P == 1) return mul(broadcast_dims<Mask>(g, x), sign(x));
    else return mul(Reduce<Max, Mask>::gradient(at, g, y, abs(x)), sign(x));
  }
};

}  // namespace ops

/// The norm of order P over all elements, or over the dimensions of a `dim`: norm<1>(x) is the sum
/// of magnitudes, norm<2>(x) the square root of the sum of squares, norm<norm_inf>(x) the largest
/// magnitude.
///
/// @return     x without the reduced dimensions; for orders 1 and norm_inf Partial on the axes that
///             shard one of them
/// @collective every rank of the mesh, if x is Partial, or for order 2 if a reduced dimension is
///             sharded: one all-reduce of one number per result
/// @throws Error for norm_inf, if there are no elements to choose from
template <int P, class... R, AnyTensor X, class D = every_dim>
  requires(!detail::asks_exact<R...>)
constexpr auto norm(const X& x, D = {}) {
  detail::require_real<X>();
  constexpr unsigned mask = detail::checked_mask<X, D>();
  if constexpr (P == norm_inf) detail::require_candidates<mask>("norm", x);
  return call_op<R...>(ops::Norm<P, mask>{}, x);
}

/// The Euclidean norm, norm<2>(x).
template <class... R, AnyTensor X, class D = every_dim>
  requires(!detail::asks_exact<R...>)
constexpr auto norm(const X& x, D over = {}) {
  return norm<2, R...>(x, over);
}
CLEAVE_USAGE(norm, "norm(x), norm(x, dim<0>{})")

}  // namespace cleave::inline v0
