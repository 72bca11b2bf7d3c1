// Making a mesh of all ranks of a group.
#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/mesh/device_mesh.hpp>

namespace cleave::inline v0::detail {

CLEAVE_INLINE std::shared_ptr<const MeshState> mesh_of_all(
    const std::shared_ptr<Communicator>& group, const Shape& extents,
    std::vector<std::string> names) {
  std::vector<int> ranks(std::size_t(group->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const index_t count = places(extents);
  const bool fits = count == group->size();
  auto state = std::make_shared<const MeshState>(group, fits ? group : nullptr, extents,
                                                 std::move(ranks), std::move(names));
  if (!fits)
    throw Error("init_device_mesh",
                "the mesh has " + std::to_string(count) + " positions, but the group has " +
                    std::to_string(group->size()) + " ranks",
                {.mesh = state->describe(), .rank = group->state().world_rank});
  return state;
}

}  // namespace cleave::inline v0::detail
