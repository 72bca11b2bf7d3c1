// Changing the placements of a value: redistribute, resolve.
#pragma once

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

/// Redistributes x to other placements, one per axis of its mesh. A Tensor has no placements and is
/// returned unchanged.
///
/// @collective every rank of the mesh
/// @cost       as DTensor::redistribute
template <AnyTensor X, PlacementType... P>
constexpr auto redistribute(const X& x, P... p) {
  if constexpr ((detail::is_chosen_at_run_time<P> || ...)) {
    static_assert(
        detail::call_level<detail::innermost_t<X>> != 2,
        "cleave: a trace does not take blocks and cut points that are chosen at run time; "
        "redistribute its arguments before");
    return detail::call_as(detail::RequestActual<P...>{detail::with_numbers(
                               layout_of<Placements<P...>, X::dims>, Placements<P...>(p...))},
                           ops::Redistribute{}, x);
  } else {
    return detail::call_as(detail::Request<Placements<P...>>{}, ops::Redistribute{}, x);
  }
}
template <AnyTensor X, class... P>
constexpr auto redistribute(const X& x, const Placements<P...>& to) {
  return detail::with_each(to, [&](const auto&... p) { return redistribute(x, p...); });
}

/// x with every Partial reduced to Replicate; x itself if there is none. Resolve a value that is
/// used several times or by nonlinear operations once, instead of at each use.
///
/// @collective every rank of the mesh
/// @cost       one all-reduce over the partial axes
template <AnyTensor X>
constexpr auto resolve(const X& x) {
  return detail::call_as(detail::like(x), ops::Redistribute{}, x);
}
CLEAVE_USAGE(resolve, "resolve(x)")

}  // namespace cleave::inline v0
