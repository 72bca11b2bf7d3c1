// The groups of a mesh's axes, and its texts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>

namespace cleave {

CLEAVE_INLINE MeshState::MeshState(std::shared_ptr<Communicator> world,
                                   std::shared_ptr<Communicator> group, const Shape& extents,
                                   std::vector<int> world_ranks, std::vector<std::string> names)
    : extents_(extents),
      world_ranks_(std::move(world_ranks)),
      names_(std::move(names)),
      world_(std::move(world)),
      group_(std::move(group)),
      axis_groups_(std::size_t(1) << extents.dims),
      labels_(std::size_t(1) << extents.dims) {
  for (AxisMask mask = 1; mask < labels_.size(); ++mask) labels_[mask] = join_names(mask);
  if (group_ == nullptr) return;
  coordinate_ = coordinate_of(extents_, group_->rank());
  if (group_->splits_early())
    for (int a = 0; a < extents_.dims; ++a) static_cast<void>(this->group(AxisMask(1) << a));
}

CLEAVE_INLINE const std::shared_ptr<Communicator>& MeshState::group(AxisMask mask) const {
  require_member();
  if (is_whole(mask)) return group_;
  std::shared_ptr<Communicator>& slot = axis_groups_[mask];
  if (slot == nullptr) slot = group_->split(member_ranks(mask), label(mask));
  return slot;
}

CLEAVE_INLINE std::string MeshState::describe() const {
  std::string text;
  for (int a = 0; a < extents_.dims; ++a)
    text += (a ? " x " : "") + names_[std::size_t(a)] + "=" + std::to_string(extents_[a]);
  return text;
}

CLEAVE_INLINE const std::shared_ptr<const MeshState>& MeshState::duplicate() const {
  if (duplicate_ == nullptr)
    duplicate_ = std::make_shared<const MeshState>(world_, group().duplicate(), extents_,
                                                   world_ranks_, names_);
  return duplicate_;
}

CLEAVE_INLINE void MeshState::require_member() const {
  if (group_ == nullptr)
    throw Error("DeviceMesh", "this rank is outside of the mesh",
                {.mesh = describe(), .rank = world_rank()});
}

CLEAVE_INLINE std::string MeshState::join_names(AxisMask mask) const {
  std::string text;
  for (int a = 0; a < extents_.dims; ++a)
    if (mask >> a & 1u) text += (text.empty() ? "" : ".") + names_[std::size_t(a)];
  return text;
}

CLEAVE_INLINE std::vector<int> MeshState::member_ranks(AxisMask mask) const {
  std::vector<int> ranks(std::size_t(size(mask)));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ranks[i] = int(linear_index(extents_, member(mask, index_t(i))));
  return ranks;
}

}  // namespace cleave
