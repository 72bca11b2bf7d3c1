// Whether a dimension is not sharded, so that one kernel can compute along it.
#pragma once

#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>

namespace cleave::detail {

/// Whether an axis may shard a dimension of the mask; true for values of unknown placements, as in
/// traces.
template <unsigned Mask, class X>
constexpr bool may_shard() {
  if constexpr (call_level<X> == 0) return false;
  else if constexpr (is_dtensor<X>)
    return X::layout.axes_where(
               [](const Placement& p) { return p.shards() && (Mask >> p.dim & 1u); }) != 0;
  else return true;
}

/// Whether x is on the host and dimension D is not sharded; false if placements are not yet known.
template <int D, class X>
constexpr bool has_whole() {
  if constexpr (call_level<X> == 0 || is_dtensor<X>)
    return std::is_same_v<typename X::device_type, Host> && !may_shard<(1u << D), X>();
  else return false;
}

/// Whether a host kernel for float or double can compute rows along dimension D.
template <int D, class X>
constexpr bool has_whole_rows() {
  return std::is_floating_point_v<typename X::value_type> && has_whole<D, X>();
}

}  // namespace cleave::detail
