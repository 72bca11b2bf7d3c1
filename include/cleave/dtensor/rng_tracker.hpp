// RNG trackers: random states beside a program's own, and the regions in which draws come from them.
//
//     TensorParallelRNGTracker tracker(mesh, tp{});
//     {
//       const auto region = tracker.distribute_region();  // other numbers for each rank along tp
//       y = dropout(x, 0.1, region.state());
//     }                                                    // the same numbers again
//
// The numbers of a DTensor belong to global indices, and are right on any mesh without a tracker.
// Trackers are for programs that draw local tensors, or keep several sequences apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/random_state.hpp>
#include <cleave/mesh/device_mesh.hpp>

namespace cleave {

/// A random state of its own, from which a rank draws inside of regions.
class RngTracker {
 public:
  /// While it lives, this rank draws from its tracker's state; then from where it stood before.
  ///
  /// Regions of a rank end in the reverse order of their beginnings.
  class Region {
   public:
    explicit Region(RngTracker& tracker)
        : tracker_(tracker),
          rank_(tracker.rank()),
          is_entered_(tracker.distribute_region_enabled),
          random_outside_(rank_.random),
          region_outside_(rank_.region) {
      if (is_entered_) tracker.enter(rank_);
    }
    Region(const Region&) = delete;  // one scope
    Region& operator=(const Region&) = delete;
    ~Region() {
      if (!is_entered_) return;
      tracker_.leave(rank_);
      rank_.random = random_outside_;
      rank_.region = std::move(region_outside_);
    }

    /// What the next draw of a local tensor on this rank takes.
    RandomState& state() const { return rank_.random; }

   private:
    RngTracker& tracker_;
    RankState& rank_;
    bool is_entered_;
    RandomState random_outside_;
    std::shared_ptr<const RandomRegion> region_outside_;
  };

  RngTracker(const RngTracker&) = delete;  // regions refer to it
  RngTracker& operator=(const RngTracker&) = delete;

  /// If false, regions change nothing: draws come from the program's own state.
  bool distribute_region_enabled = true;

  /// Where the next region begins, to be saved: the same on all ranks.
  RandomState state() const { return state_; }
  void set_state(const RandomState& state) { state_ = state; }
  void manual_seed(std::uint64_t seed) { state_ = {seed, 0}; }

  /// A scope in which this rank draws from the tracker's state.
  ///
  /// @collective none, but draws on a mesh need equal states on its ranks
  /// @throws Error if a region of this tracker has not ended yet
  Region distribute_region() { return Region(*this); }

  /// Whether the ranks of the mesh stand at one state.
  /// @collective every rank of the mesh: an all-gather of 16 bytes
  bool is_synchronized() const {
    if (!mesh_->is_member() || mesh_->size() == 1) return true;
    for (const RandomState& other :
         detail::gather_values(mesh_->group().host(), state_, "is_synchronized"))
      if (!(other == state_)) return false;
    return true;
  }

 protected:
  /// @param region  what seeds are greater by; null if by nothing
  template <class Mesh>
  RngTracker(const Mesh& mesh, std::uint64_t seed, std::shared_ptr<const RandomRegion> region)
      : state_{seed, 0},
        region_(std::move(region)),
        owner_(std::make_shared<const Mesh>(mesh)),
        mesh_(&mesh.state()) {}
  ~RngTracker() = default;

 private:
  RankState& rank() const { return mesh_->world()->state(); }
  std::uint64_t shift() const { return detail::shift_of(region_.get(), mesh_->world()->rank()); }

  void enter(RankState& rank) {
    if (is_open_)
      throw Error("distribute_region", "a region of this tracker has not ended yet",
                  {.mesh = mesh_->describe(), .rank = mesh_->world_rank()});
    is_open_ = true;
    rank.random = {state_.seed + shift(), state_.offset};
    rank.region = region_;
  }
  void leave(const RankState& rank) {
    is_open_ = false;
    state_ = {rank.random.seed - shift(), rank.random.offset};
  }

  RandomState state_;  ///< without what this rank's seed is greater by
  std::shared_ptr<const RandomRegion> region_;
  std::shared_ptr<const void> owner_;  ///< of the mesh
  const MeshState* mesh_;
  bool is_open_ = false;
};

/// Inside of its regions all ranks draw from one state, as they do outside: the numbers are those of
/// global indices.
class OffsetBasedRNGTracker : public RngTracker {
 public:
  /// @collective none
  template <class Mesh>
    requires is_device_mesh<Mesh>
  OffsetBasedRNGTracker(const Mesh& mesh, std::uint64_t seed) : RngTracker(mesh, seed, nullptr) {}
};

/// Inside of its regions ranks at different places along an axis draw different numbers, with the
/// seed base + 2718 + place as in PyTorch; outside, all draw the same.
///
/// Inside, an array that is not sharded over the axis cannot be drawn: its replicas would differ.
class TensorParallelRNGTracker : public RngTracker {
 public:
  /// @param mesh  the program's mesh, or a part of it: then arrays of larger meshes cannot be drawn
  ///              inside if they are replicated to ranks that are not of the part
  /// @tparam A    the mesh axis of tensor parallelism
  /// @collective  none
  template <class Device, class... Axes, Axis A>
  TensorParallelRNGTracker(const DeviceMesh<Device, Axes...>& mesh, A, std::uint64_t seed = 1234)
      : RngTracker(mesh, seed,
                   places(mesh.state(), DeviceMesh<Device, Axes...>::template index_of<A>())) {}

 private:
  static std::shared_ptr<const RandomRegion> places(const MeshState& mesh, int axis) {
    RandomRegion region;
    region.shift.resize(std::size_t(mesh.world()->size()), 0);
    for (index_t i = 0; i < mesh.size(); ++i) {
      const auto rank = std::size_t(mesh.world_ranks()[std::size_t(i)]);
      region.shift[rank] = 2718 + std::uint64_t(coordinate_of(mesh.extents(), i)[axis]);
    }
    return std::make_shared<const RandomRegion>(std::move(region));
  }
};

}  // namespace cleave
