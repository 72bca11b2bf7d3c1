// A style for modules that draw random numbers from an RNG tracker.
//
// The random elements of a DTensor depend on global indices: shards differ between ranks and
// replicas are equal without this style. It is for modules that draw from a sequence separate from
// the program's, or that draw local tensors with different numbers on each rank.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/dtensor/rng_tracker.hpp>
#include <cleave/nn/part.hpp>

namespace cleave::inline v0 {

/// The module M, whose calls are regions of a tracker.
template <class M, class Tracker>
struct DrawsFromTracker : M {
  using wrapped = M;
  using plain = nn::plain_t<M>;

  DrawsFromTracker(M m, Tracker& tracker) : M(std::move(m)), tracker_(&tracker) {}
  template <class N>
  auto rewrap(N m) const {
    return DrawsFromTracker<N, Tracker>(std::move(m), *tracker_);
  }

  template <class... X>
  auto operator()(const X&... x) const {
    const auto region = tracker_->distribute_region();
    return M::operator()(x...);
  }

 private:
  Tracker* tracker_;
};

/// A style for modules that draw from a tracker, which must outlive them.
///
///     TensorParallelRNGTracker tracker(mesh, tp{});
///     on("blocks.*.attention"_path, styles(PrepareModuleInput(Replicate{}),
///     random_region(tracker)))
///
/// @throws Error in the call, if a module and one inside it draw from the same tracker; with a
///         TensorParallelRNGTracker, if a drawn array is not sharded over its axis
template <class Tracker>
auto random_region(Tracker& tracker) {
  return [&tracker](const auto& m, const auto&) {
    using M = std::remove_cvref_t<decltype(m)>;
    return DrawsFromTracker<M, Tracker>(m, tracker);
  };
}

}  // namespace cleave::inline v0
