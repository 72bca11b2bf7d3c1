// Other placements of a value as an operation, and the ways out of a mesh.
#pragma once

#include <cleave/ops/call.hpp>

namespace cleave {

/// x under other placements, one per axis of its mesh; a Tensor, which has none, as it is.
///
/// @collective every rank of the mesh
/// @cost       as DTensor::redistribute
template <AnyTensor X, PlacementType... P>
constexpr auto redistribute(const X& x, P...) {
  return detail::call_as(detail::Request<Placements<P...>>{}, ops::Redistribute{}, x);
}
template <AnyTensor X, class... P>
constexpr auto redistribute(const X& x, Placements<P...>) {
  return redistribute(x, P{}...);
}

/// x with every Partial reduced to Replicate; x itself where there is none. What is used several
/// times, or by operations that are not linear, is resolved once this way instead of by each use.
///
/// @collective every rank of the mesh
/// @cost       one all-reduce over the partial axes
template <AnyTensor X>
constexpr auto resolve(const X& x) {
  return detail::call_as(detail::like(x), ops::Redistribute{}, x);
}

}  // namespace cleave
