// Plans that depend on sizes, kept per mesh: a plan is chosen once per layouts and shape.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <cleave/core/checksum.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/keyed_cache.hpp>

namespace cleave::inline v0 {

/// The cost model of a group, the same on all its ranks: the constants of CLEAVE_TUNE, or those of
/// its backend on one node.
inline CostModel cost_model(const Communicator& group) {
  CostModel model;
  const MachineCosts& machine = group.state().machine;
  const LinkCosts inside = machine.inside.known() ? machine.inside : group.typical_costs();
  if (inside.known()) {
    model.latency_us = inside.latency_us;
    model.bytes_per_us = inside.bytes_per_us;
  }
  if (machine.between.known()) {
    model.ranks_per_node = machine.ranks_per_node;
    model.network_latency_us = machine.between.latency_us;
    model.network_bytes_per_us = machine.between.bytes_per_us;
  }
  return model;
}

namespace redistribution {

/// The layout with axes of one rank replicated: placements on them have no effect.
constexpr Layout without_unit_axes(Layout layout, const Shape& mesh) {
  for (int a = 0; a < layout.axes; ++a)
    if (mesh[a] == 1) layout[a] = Placement::replicate();
  return layout;
}

/// The plans of one mesh whose choice depends on sizes.
class PlanCache {
 public:
  /// The cheapest plan. The reference is valid until the next call.
  template <std::same_as<MeshState> Mesh>  // compiled where it is called
  const Plan& plan(const Layout& source, const Layout& target, const Shape& shape, const Mesh& mesh,
                   std::size_t element_size) {
    const Key key{source, target, element_size, shape};
    if (const Plan* known = plans_.find(key)) return *known;
    return plans_.add(key, choose_plan(without_unit_axes(source, mesh.extents()),
                                       without_unit_axes(target, mesh.extents()), shape,
                                       mesh.extents(), element_size, cost_model(mesh.group())));
  }

 private:
  struct Key {
    Layout source;
    Layout target;
    std::size_t element_size;
    Shape shape;

    friend bool operator==(const Key&, const Key&) = default;
    std::uint64_t checksum() const {
      const std::array<std::uint64_t, 3> others{source.packed(), target.packed(), element_size};
      return cleave::detail::checksum(shape) ^ cleave::detail::checksum(others);
    }
  };

  KeyedCache<Key, Plan, 1024> plans_;  ///< enough for a large network
};

}  // namespace redistribution

}  // namespace cleave::inline v0
