// Random numbers inside of modules that differ along the axis of tensor parallelism.
//
// Draws of a DTensor belong to global indices: what is sharded differs from rank to rank, what is
// replicated is equal, without any style. This one is for modules that are to draw from a tracker:
// from a sequence apart from the program's, or, of local tensors, other numbers on each rank.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/dtensor/rng_tracker.hpp>
#include <cleave/nn/part.hpp>

namespace cleave {

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

/// The style of modules that draw from a tracker, which has to outlive them.
///
///     TensorParallelRNGTracker tracker(mesh, tp{});
///     on("blocks.*.attention"_path, styles(PrepareModuleInput(Replicate{}),
///     random_region(tracker)))
///
/// @throws Error in the call, if a module inside of another one draws from the same tracker; of a
///         TensorParallelRNGTracker, if what is drawn is not sharded over its axis
template <class Tracker>
auto random_region(Tracker& tracker) {
  return [&tracker](const auto& m, const auto&) {
    using M = std::remove_cvref_t<decltype(m)>;
    return DrawsFromTracker<M, Tracker>(m, tracker);
  };
}

}  // namespace cleave
