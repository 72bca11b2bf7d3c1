// Whether a dimension is not sharded, so that one kernel can compute along it. Types tell for
// Tensors and DTensors. A traced value tells while a graph is expanded; until then, composites
// whose bodies ask are single nodes. @see CompositeByPlacement
#pragma once

#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>

namespace cleave::detail {

/// Whether an axis may shard a dimension of the mask, by the type of x.
template <unsigned Mask, class X>
constexpr bool may_shard() {
  if constexpr (call_level<X> == 0) return false;
  else if constexpr (is_dtensor<X>)
    return X::layout.axes_where(
               [](const Placement& p) { return p.shards() && (Mask >> p.dim & 1u); }) != 0;
  else return true;
}

/// Whether x is on the host and, by its type, each rank may have the dimensions of the mask whole.
template <unsigned Mask, class X>
constexpr bool may_be_whole() {
  using Plain = innermost_t<X>;
  return std::is_same_v<typename Plain::device_type, Host> &&
         (call_level<Plain> == 2 || !may_shard<Mask, Plain>());
}

/// `whole(x)` where a host kernel for float or double can compute rows of x along dimension D, else
/// `parts(x)`.
template <int D, class X>
constexpr auto by_rows(const X& x, const auto& whole, const auto& parts) {
  constexpr bool can = std::is_floating_point_v<typename X::value_type> && call_level<X> <= 2;
  if constexpr (!can) return parts(x);
  else if constexpr (!may_be_whole<(1u << D), X>()) return parts(x);
  else if constexpr (call_level<X> == 2) return x.is_whole(1u << D) ? whole(x) : parts(x);
  else return whole(x);
}

}  // namespace cleave::detail
