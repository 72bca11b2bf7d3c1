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

namespace cleave::inline v0 {

CLEAVE_INLINE MeshState::MeshState(std::shared_ptr<Communicator> world,
                                   std::shared_ptr<Communicator> group, const Shape& extents,
                                   std::vector<int> world_ranks, std::vector<std::string> names,
                                   SliceOf slice)
    : extents_(extents),
      world_ranks_(std::move(world_ranks)),
      names_(std::move(names)),
      world_(std::move(world)),
      group_(std::move(group)),
      axis_groups_(std::size_t(1) << extents.dims),
      labels_(std::size_t(1) << extents.dims),
      slice_(std::move(slice)) {
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

CLEAVE_INLINE std::string MeshState::describe_ranks() const {
  std::string text = describe() + " (ranks ";
  for (std::size_t i = 0; i < world_ranks_.size(); ++i)
    text += (i ? ", " : "") + std::to_string(world_ranks_[i]);
  return text + ")";
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

CLEAVE_INLINE std::shared_ptr<const MeshState> slice_of(
    const std::shared_ptr<const MeshState>& mesh, AxisMask mask, std::vector<std::string> names) {
  const SliceOf& above = mesh->slice();
  SliceOf slice{above.mesh != nullptr ? above.mesh : mesh, {}};
  Shape extents;
  for (int a = 0; a < mesh->extents().dims; ++a) {
    if (!(mask >> a & 1u)) continue;
    const AxisMask axes = above.mesh != nullptr ? above.axes[std::size_t(a)] : AxisMask(1) << a;
    if (extents.dims == int(names.size())) {  // several axes as one
      slice.axes.back() |= axes;
      extents[extents.dims - 1] *= mesh->extents()[a];
    } else {
      slice.axes.push_back(axes);
      extents[extents.dims++] = mesh->extents()[a];
    }
  }
  const std::shared_ptr<Communicator>& group = mesh->group(mask);
  std::vector<int> ranks;
  for (index_t i = 0; i < mesh->size(mask); ++i)
    ranks.push_back(
        mesh->world_ranks()[std::size_t(linear_index(mesh->extents(), mesh->member(mask, i)))]);
  return std::make_shared<const MeshState>(mesh->world(), group, extents, std::move(ranks),
                                           std::move(names), std::move(slice));
}

CLEAVE_INLINE std::shared_ptr<const MeshState> joined_slices(const char* operation,
                                                             const std::string& what,
                                                             const MeshState& outer,
                                                             const MeshState& inner) {
  const std::shared_ptr<const MeshState>& from = outer.slice().mesh;
  SliceOf slice{from, outer.slice().axes};
  slice.axes.insert(slice.axes.end(), inner.slice().axes.begin(), inner.slice().axes.end());
  AxisMask mask = 0;
  bool fits = from != nullptr && inner.slice().mesh != nullptr && *from == *inner.slice().mesh;
  bool is_ascending = true;
  for (const AxisMask axes : slice.axes) {
    fits = fits && (mask & axes) == 0;
    is_ascending = is_ascending && (axes & (~axes + 1)) > mask;  // its lowest bit
    mask |= axes;
  }
  if (!fits)
    throw Error(operation,
                what + inner.describe_ranks() + ", which must be a slice of the same mesh as " +
                    outer.describe_ranks() + ", over other axes: mesh[tp{}] and mesh[dp{}]",
                {.mesh = outer.describe(), .rank = outer.world_rank()});
  if (is_ascending && int(slice.axes.size()) == from->extents().dims) return from;

  struct Made {  // kept by its users: it holds `from`
    std::vector<std::pair<std::vector<AxisMask>, std::weak_ptr<const MeshState>>> meshes;
  };
  Made& made = from->cache<Made>();
  for (const auto& [axes, mesh] : made.meshes)
    if (axes == slice.axes)
      if (auto kept = mesh.lock()) return kept;

  Shape extents;
  std::vector<std::string> names;
  for (const MeshState* mesh : {&outer, &inner})
    for (int a = 0; a < mesh->extents().dims; ++a) {
      extents[extents.dims++] = mesh->extents()[a];
      names.push_back(mesh->name(a));
    }
  std::vector<int> members, ranks;  // in the group of these axes, and in the world
  for (index_t i = 0; i < extents.product(); ++i) {
    const Shape at = coordinate_of(extents, i);
    Shape there = from->coordinate();
    for (int a = 0; a < extents.dims; ++a)
      there = member_at(from->extents(), there, slice.axes[std::size_t(a)], at[a]);
    members.push_back(int(linear_index(from->extents(), there, mask)));
    ranks.push_back(from->world_ranks()[std::size_t(linear_index(from->extents(), there))]);
  }
  std::string label;
  for (const std::string& name : names) label += (label.empty() ? "" : ".") + name;
  std::shared_ptr<Communicator> group = from->group(mask);
  if (!is_ascending) group = group->subgroup(members, label);
  const std::vector<AxisMask> axes = slice.axes;
  auto mesh =
      std::make_shared<const MeshState>(from->world(), std::move(group), extents, std::move(ranks),
                                        std::move(names), std::move(slice));
  made.meshes.emplace_back(axes, mesh);
  return mesh;
}

}  // namespace cleave::inline v0
