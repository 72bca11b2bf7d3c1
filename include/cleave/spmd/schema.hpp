// Schemas: the placements of a program's inputs, one per axis of the mesh.
#pragma once

#include <array>
#include <type_traits>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/spmd/leaves.hpp>

namespace cleave::inline v0::spmd {

/// The placements of an input, one per axis of the mesh; negative dimensions count from the end.
template <PlacementType... P>
constexpr Layout schema(P...) {
  static_assert(!(cleave::detail::is_chosen_at_run_time<P> || ...),
                "cleave: programs do not take blocks and cut points that are chosen at run time");
  Layout layout;
  ((layout[layout.axes++] = cleave::detail::PlacementTraits<P>::value(0)), ...);
  return layout;
}

/// The placements of DTensors, as schemas.
template <class... X>
  requires(is_dtensor<X> && ...)
constexpr std::array<Layout, sizeof...(X)> schemas_of(const X&...) {
  static_assert(!(X::is_open || ...),
                "cleave: programs do not take blocks and cut points that are chosen at run time; "
                "redistribute the tensor to Shard first");
  return {X::layout...};
}

/// The same of all DTensors in x: in tuples, arrays and vectors of them, and in modules. Buffers
/// that are Tensors are Replicate.
template <class... X>
std::vector<Layout> schemas_of(const X&... x) {
  std::vector<Layout> schemas;
  int axes = 0;
  const auto append = [&](const auto& leaf) {
    using V = cleave::detail::innermost_t<std::remove_cvref_t<decltype(leaf)>>;
    if constexpr (is_on_all_ranks<V>) schemas.push_back({});
    else if constexpr (V::layout.is_open()) static_cast<void>(schemas_of(leaf));
    else axes = schemas.emplace_back(V::layout).axes;
  };
  (each_leaf(x, append), ...);
  for (Layout& layout : schemas)
    if (layout.axes == 0) layout = Layout::replicated(axes);
  return schemas;
}

}  // namespace cleave::inline v0::spmd
