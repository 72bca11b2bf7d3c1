// RNG trackers: additional random states, and regions of a program that draw from them.
//
//     TensorParallelRNGTracker tracker(mesh, tp{});
//     {
//       const auto region = tracker.distribute_region();  // other numbers for each rank along tp
//       y = dropout(x, 0.1, region.state());
//     }                                                    // the same numbers again
//
// The random elements of a DTensor depend on global indices and are correct on any mesh without a
// tracker. Trackers are for programs that draw local tensors or keep several sequences separate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/manual_seed.hpp>
#include <cleave/mesh/device_mesh.hpp>

namespace cleave::inline v0 {

/// A separate random state, from which a rank draws inside regions.
class RngTracker {
 public:
  /// A scope in which this rank draws from the tracker's state; its end restores the earlier state.
  ///
  /// The regions of a rank must end in the reverse order of their beginnings.
  class Region {
   public:
    explicit Region(RngTracker& tracker)
        : tracker_(tracker),
          rank_(tracker.rank()),
          is_entered_(tracker.distribute_region_enabled),
          random_outside_(rank_.state),
          region_outside_(rank_.region) {
      if (is_entered_) tracker.enter(rank_);
    }
    Region(const Region&) = delete;  // a scope guard
    Region& operator=(const Region&) = delete;
    ~Region() {
      if (!is_entered_) return;
      tracker_.leave(rank_);
      rank_.state = random_outside_;
      rank_.region = std::move(region_outside_);
    }

    /// The state for the next draw of a local tensor on this rank.
    RandomState& state() const { return rank_.state; }

   private:
    RngTracker& tracker_;
    detail::RankDraws& rank_;
    bool is_entered_;
    RandomState random_outside_;
    std::shared_ptr<const RandomRegion> region_outside_;
  };

  RngTracker(const RngTracker&) = delete;  // regions refer to it
  RngTracker& operator=(const RngTracker&) = delete;

  /// If false, regions have no effect: draws use the program's own state.
  bool distribute_region_enabled = true;

  /// The state at which the next region begins, to be saved: the same on all ranks.
  RandomState state() const { return state_; }
  void set_state(const RandomState& state) { state_ = state; }
  void manual_seed(std::uint64_t seed) { state_ = {seed, 0}; }

  /// A scope in which this rank draws from the tracker's state.
  ///
  /// @collective none, but draws on a mesh need equal states on its ranks
  /// @throws Error if a region of this tracker has not ended yet
  Region distribute_region() { return Region(*this); }

  /// Whether the tracker has the same state on all ranks of the mesh.
  /// @collective every rank of the mesh: an all-gather of 16 bytes
  bool is_synchronized() const {
    if (!mesh_->is_member() || mesh_->size() == 1) return true;
    for (const RandomState& other :
         detail::gather_values(mesh_->group().host(), state_, "is_synchronized"))
      if (!(other == state_)) return false;
    return true;
  }

 protected:
  /// @param region  the offsets that it adds to the seeds; null for none
  template <class Mesh>
  RngTracker(const Mesh& mesh, std::uint64_t seed, std::shared_ptr<const RandomRegion> region)
      : state_{seed, 0},
        region_(std::move(region)),
        owner_(std::make_shared<const Mesh>(mesh)),
        mesh_(&mesh.state()) {}
  ~RngTracker() = default;

 private:
  detail::RankDraws& rank() const { return detail::RankDraws::of(mesh_->world()->state()); }
  std::uint64_t shift() const { return detail::shift_of(region_.get(), mesh_->world()->rank()); }

  void enter(detail::RankDraws& rank) {
    if (is_open_)
      throw Error("distribute_region", "a region of this tracker has not ended yet",
                  {.mesh = mesh_->describe(), .rank = mesh_->world_rank()});
    is_open_ = true;
    rank.state = {state_.seed + shift(), state_.offset};
    rank.region = region_;
  }
  void leave(const detail::RankDraws& rank) {
    is_open_ = false;
    state_ = {rank.state.seed - shift(), rank.state.offset};
  }

  RandomState state_;  ///< without this rank's seed offset
  std::shared_ptr<const RandomRegion> region_;
  std::shared_ptr<const void> owner_;  ///< keeps the mesh alive
  const MeshState* mesh_;
  bool is_open_ = false;
};

/// Inside its regions all ranks draw from one state, as outside: the numbers depend on global
/// indices.
class OffsetBasedRNGTracker : public RngTracker {
 public:
  /// @collective none
  template <class Mesh>
    requires is_device_mesh<Mesh>
  OffsetBasedRNGTracker(const Mesh& mesh, std::uint64_t seed) : RngTracker(mesh, seed, nullptr) {}
};

/// Inside its regions, ranks with different coordinates on an axis draw different numbers, with the
/// seed base + 2718 + coordinate as in PyTorch; outside, all ranks draw the same numbers.
///
/// Inside, an array that is not sharded over the axis cannot be drawn: its replicas would differ.
class TensorParallelRNGTracker : public RngTracker {
 public:
  /// @param mesh  the program's mesh or a submesh. With a submesh, arrays that are replicated to
  ///              ranks outside it cannot be drawn inside a region
  /// @tparam A    the mesh axis of tensor parallelism
  /// @collective  none
  template <class Device, class... Axes, Axis A>
  TensorParallelRNGTracker(const DeviceMesh<Device, Axes...>& mesh, A, std::uint64_t seed = 1234)
      : RngTracker(mesh, seed,
                   places(mesh.state(), DeviceMesh<Device, Axes...>::template index_of<A>())) {}
  /// The same along the only axis of a mesh.
  template <class Device, class... Axes>
  explicit TensorParallelRNGTracker(const DeviceMesh<Device, Axes...>& mesh,
                                    std::uint64_t seed = 1234)
      : RngTracker(mesh, seed, places(mesh.state(), 0)) {
    static_assert(
        sizeof...(Axes) == 1,
        "cleave: the mesh has several axes; name the one along which ranks draw different "
        "numbers: TensorParallelRNGTracker(mesh, tp{})");
  }

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

}  // namespace cleave::inline v0
