// Whether a dimension is not sharded, so that one kernel can compute along it. Types tell for
// Tensors and DTensors. A traced value tells while a graph is expanded; until then, composites
// whose bodies ask are single nodes. @see CompositeByPlacement
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>

namespace cleave::inline v0::detail {

/// Whether an axis may shard a dimension of the mask, by the type of x.
template <unsigned Mask, class X>
constexpr bool may_shard() {
  if constexpr (call_level<X> == 0) return false;
  else if constexpr (is_dtensor<X>)
    return X::layout.axes_where(
               [](const Placement& p) { return p.shards() && (Mask >> p.dim & 1u); }) != 0;
  else return true;
}

template <class X>
inline constexpr bool is_on_host = std::is_same_v<typename innermost_t<X>::device_type, Host>;

/// Whether, by the type of x, each rank may have the dimensions of the mask whole.
template <unsigned Mask, class X>
constexpr bool may_be_whole() {
  using Plain = innermost_t<X>;
  return call_level<Plain> == 2 || !may_shard<Mask, Plain>();
}

/// Whether kernels compute whole rows of such elements: of float and double, on GPUs also of 16-bit
/// floats.
template <class X>
inline constexpr bool has_row_kernels =
    is_on_host<X> ? std::is_floating_point_v<typename X::value_type>
                  : std::is_floating_point_v<accumulator_t<typename X::value_type>>;

/// `whole(x)` where a kernel can compute rows of x along dimension D, else `parts(x)`, which is
/// differentiable: also where gradients of x or of other operands are tracked.
template <int D, class X, class... Others>
constexpr auto by_rows(const X& x, const auto& whole, const auto& parts, const Others&...) {
  constexpr bool is_tracked = ((call_level<X> > 2) || ... || (call_level<Others> > 2));
  if constexpr (is_tracked) return parts(x);
  else if constexpr (!has_row_kernels<X>) return parts(x);
  else if constexpr (!may_be_whole<(1u << D), X>()) return parts(x);
  else if constexpr (call_level<X> == 2) return x.is_whole(1u << D) ? whole(x) : parts(x);
  else return whole(x);
}

}  // namespace cleave::inline v0::detail
