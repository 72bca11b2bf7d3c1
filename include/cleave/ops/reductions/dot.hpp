// Sums of products of elements.
//
//     // z[P] = dot(x[S0], y[S0])
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The sum of x · y over the dimensions of the mask; nothing is conjugated.
template <unsigned Mask>
struct Dot : Composite {
  static constexpr const char* name = "dot";
  static constexpr auto body(const auto& x, const auto& y) {
    return call_op(Reduce<Sum, Mask>{}, mul(x, y));
  }

  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x, const auto& y) {
    return mul(broadcast_dims<Mask>(g, x), conj(y));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x, const auto& y) {
    return mul(broadcast_dims<Mask>(g, y), conj(x));
  }
};

}  // namespace ops

namespace detail {

/// Requires two operands with the same number of dimensions and element type.
template <class X, class Y>
constexpr void require_pair() {
  static_assert(
      X::dims == Y::dims && std::is_same_v<typename X::value_type, typename Y::value_type>,
      "cleave: dot requires two arrays of the same extents and element type");
}

}  // namespace detail

/// The sum of x · y over all dimensions, or over the dimensions of a `dim`. As in dot of NumPy and
/// PyTorch, complex elements are not conjugated.
///
/// @return     Partial<Sum> on the axes that shard a summed dimension
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the extents differ
template <class... R, AnyTensor X, AnyTensor Y, class D = every_dim>
  requires(!detail::asks_exact<R...>)
constexpr auto dot(const X& x, const Y& y, D = {}) {
  detail::require_pair<X, Y>();
  return call_op<R...>(ops::Dot<detail::checked_mask<X, D>()>{}, x, y);
}
CLEAVE_USAGE(dot, "dot(x, y), dot(x, y, dim<0>{})")

}  // namespace cleave::inline v0
