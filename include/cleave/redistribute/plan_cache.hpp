// Plans that depend on sizes, kept per mesh: a choice is made once per layouts and shape.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/choose.hpp>

namespace cleave {

/// The constants of a backend, measured on one node; the same on every rank of a group.
inline CostModel cost_model(const Communicator& group) {
  if (std::strcmp(group.backend(), "mpi") == 0) return {.latency_us = 15, .bytes_per_us = 5000};
  return {.latency_us = 5, .bytes_per_us = 10000};
}

namespace redistribution {

/// The layout without the axes that have one rank: they place nothing.
constexpr Layout without_unit_axes(Layout layout, const Shape& mesh) {
  for (int a = 0; a < layout.axes; ++a)
    if (mesh[a] == 1) layout[a] = Placement::replicate();
  return layout;
}

/// The plans of one mesh whose choice took sizes into account.
class PlanCache {
 public:
  /// The cheapest plan. The reference holds until the next call.
  template <std::same_as<MeshState> Mesh>  // compiled where it is called
  const Plan& plan(const Layout& source, const Layout& target, const Shape& shape,
                   const Mesh& mesh, std::size_t element_size) {
    const std::uint64_t from = source.packed(), to = target.packed();
    for (const Entry& entry : entries_)
      if (entry.source == from && entry.target == to && entry.element_size == element_size &&
          entry.shape == shape)
        return entry.plan;
    if (entries_.size() == capacity) entries_.erase(entries_.begin());
    entries_.push_back({from, to, element_size, shape,
                        choose_plan(without_unit_axes(source, mesh.extents()),
                                    without_unit_axes(target, mesh.extents()), shape,
                                    mesh.extents(), element_size, cost_model(mesh.group()))});
    return entries_.back().plan;
  }

 private:
  static constexpr std::size_t capacity = 64;

  struct Entry {
    std::uint64_t source;
    std::uint64_t target;
    std::size_t element_size;
    Shape shape;
    Plan plan;
  };

  std::vector<Entry> entries_;
};

}  // namespace redistribution

}  // namespace cleave
