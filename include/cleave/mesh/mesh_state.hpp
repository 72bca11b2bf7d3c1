// A mesh without its types: extents, coordinates of ranks, and the communicators of its axes. Plans
// run on it, so that they compile once for all meshes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0 {

/// A set of axes of a mesh: bit a stands for axis a.
using AxisMask = unsigned;

/// Row-major index of a coordinate along the axes of the mask.
constexpr index_t linear_index(const Shape& extents, const Shape& coordinate, AxisMask mask = ~0u) {
  index_t index = 0;
  for (int a = 0; a < extents.dims; ++a)
    if (mask >> a & 1u) index = index * extents[a] + coordinate[a];
  return index;
}

/// The inverse: `coordinate`, moved to that index along the axes of the mask.
constexpr Shape member_at(const Shape& extents, Shape coordinate, AxisMask mask, index_t index) {
  for (int a = extents.dims - 1; a >= 0; --a) {
    if (!(mask >> a & 1u)) continue;
    coordinate[a] = extents[a] == 0 ? 0 : index % extents[a];
    index /= extents[a] == 0 ? 1 : extents[a];
  }
  return coordinate;
}
constexpr Shape coordinate_of(const Shape& extents, index_t index) {
  return member_at(extents, extents, ~0u, index);
}

class MeshState;

/// The mesh from which another one was sliced, and for each axis of the slice, its axes there.
struct SliceOf {
  std::shared_ptr<const MeshState> mesh{};  ///< null if the mesh is not a slice
  std::vector<AxisMask> axes{};
};

/// State that `DeviceMesh` handles share. Belongs to one rank.
class MeshState {
 public:
  /// @param world        the group that the mesh was made from
  /// @param group        all ranks of the mesh in row-major order, or null on a rank outside
  /// @param world_ranks  their ranks in `world`
  MeshState(std::shared_ptr<Communicator> world, std::shared_ptr<Communicator> group,
            const Shape& extents, std::vector<int> world_ranks, std::vector<std::string> names,
            SliceOf slice = {});

  const Shape& extents() const noexcept { return extents_; }
  index_t size() const noexcept { return extents_.product(); }
  const std::vector<int>& world_ranks() const noexcept { return world_ranks_; }
  const std::string& name(int axis) const { return names_[std::size_t(axis)]; }
  /// Whether this rank is in the mesh.
  bool is_member() const noexcept { return group_ != nullptr; }

  /// This rank's coordinate. @throws Error on a rank outside
  const Shape& coordinate() const {
    require_member();
    return coordinate_;
  }

  /// All ranks of the mesh, row-major.
  Communicator& group() const {
    require_member();
    return *group_;
  }
  /// The group that the mesh was made from; also known on ranks outside.
  const std::shared_ptr<Communicator>& world() const noexcept { return world_; }

  /// The ranks that differ from this one in the axes of the mask only; the last axis varies
  /// fastest. Created at the first call and kept.
  ///
  /// @collective the first call for a mask: the ranks of that group; over NCCL, for several axes,
  ///             every rank of the mesh (for one axis the groups are made with the mesh)
  const std::shared_ptr<Communicator>& group(AxisMask mask) const;

  /// The product of the extents in the mask.
  index_t size(AxisMask mask) const { return product_over(extents_, mask); }

  /// The mesh coordinate of member `index` of `group(mask)`.
  Shape member(AxisMask mask, index_t index) const {
    return member_at(extents_, coordinate(), mask, index);
  }

  /// "dp.tp"
  const std::string& label(AxisMask mask) const { return labels_[mask]; }

  /// "dp=2 x tp=2"
  std::string describe() const;
  /// The same with the ranks: "dp=2 (ranks 0, 2)".
  std::string describe_ranks() const;

  /// The mesh from which this one was sliced, never itself a slice.
  const SliceOf& slice() const noexcept { return slice_; }

  /// Whether some axis has only one rank: placements on it have no effect.
  bool has_unit_axis() const noexcept {
    for (const index_t extent : extents_)
      if (extent == 1) return true;
    return false;
  }

  /// The same mesh with separate groups, for asynchronous work. Made at the first call.
  /// @collective the first call: every rank of the mesh
  const std::shared_ptr<const MeshState>& duplicate() const;

  /// State that a higher layer keeps for this mesh: one X per type X, made at the first call.
  template <class X>
  X& cache() const {
    static constexpr char key = 0;
    for (const auto& [type, object] : caches_)
      if (type == &key) return *static_cast<X*>(object.get());
    auto made = std::make_shared<X>();
    X& result = *made;
    caches_.emplace_back(&key, std::move(made));
    return result;
  }

  /// The world rank of this rank.
  int world_rank() const noexcept { return world_->state().world_rank; }

  /// Whether the same ranks have the same coordinates.
  friend bool operator==(const MeshState& a, const MeshState& b) {
    return &a == &b || (a.extents_ == b.extents_ && a.world_ranks_ == b.world_ranks_);
  }

 private:
  void require_member() const;

  bool is_whole(AxisMask mask) const {
    for (int a = 0; a < extents_.dims; ++a)
      if (extents_[a] != 1 && !(mask >> a & 1u)) return false;
    return true;
  }

  std::string join_names(AxisMask mask) const;

  std::vector<int> member_ranks(AxisMask mask) const;

  Shape extents_;
  Shape coordinate_{};
  std::vector<int> world_ranks_;
  std::vector<std::string> names_;
  std::shared_ptr<Communicator> world_;
  std::shared_ptr<Communicator> group_;
  mutable std::vector<std::shared_ptr<Communicator>> axis_groups_;
  std::vector<std::string> labels_;
  mutable std::shared_ptr<const MeshState> duplicate_;
  mutable std::vector<std::pair<const void*, std::shared_ptr<void>>> caches_;
  SliceOf slice_;
};

/// A slice of some axes: one per axis of the mask, or all of them as one.
/// @collective the first time: the ranks of that group
std::shared_ptr<const MeshState> slice_of(const std::shared_ptr<const MeshState>& mesh,
                                          AxisMask mask, std::vector<std::string> names);

/// The mesh of the axes of two slices of one mesh, those of `outer` first.
///
/// @collective    the first time: the ranks of both meshes
/// @throws Error  unless both are slices of one mesh without a common axis; the message begins with
///                `what`
std::shared_ptr<const MeshState> joined_slices(const char* operation, const std::string& what,
                                               const MeshState& outer, const MeshState& inner);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/mesh/mesh_state_body.hpp>
#endif
