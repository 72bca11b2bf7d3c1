// Computing inner elements while ghosts travel between hosts.
//
// On a node an exchange takes microseconds, and waits for nothing.
#pragma once

#include <memory>
#include <optional>

#include <cleave/comm/async.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>

namespace cleave::detail {

/// An exchange that another thread runs.
struct ArrivingGhosts {
  GhostExchange exchange;
  std::optional<Async<bool>> received{};
};

/// When an exchange is worth another thread.
struct OverlapLimits {
  /// Of the exchange between hosts, and of the inner elements. Starting the thread's work and
  /// waking up after it take 20 to 50 us on two busy cores.
  double least_us = 100;
  double bytes_per_us = 10000;  ///< of fields, at which inner elements are computed
};

/// Reads what this rank's part of the result needs of distributed fields, or starts to if they come
/// from other hosts and there is enough to compute meanwhile, by the cost model: then
/// `fields.arriving` is set. All ranks choose the same.
/// @collective every rank of the mesh, if elements of other ranks are read
CLEAVE_INLINE void exchange_or_start(const char* name, StencilFields& fields, const Layout& layout,
                                     const MeshState& mesh);

/// The results that read no ghosts.
CLEAVE_INLINE Box inner_results(const StencilFields& fields);

/// Waits for ghosts that are arriving. @throws what the exchange threw
CLEAVE_INLINE void finish_exchange(StencilFields& fields);

/// Calls f(box) for the parts of a box outside of an inner one.
template <class F>
void each_box_around(Box rest, const Box& inner, const F& f) {
  for (int d = 0; d < rest.dims(); ++d) {
    Box side = rest;
    side.end[d] = inner.begin[d];
    if (!side.empty()) f(side);
    side.begin[d] = inner.end[d], side.end[d] = rest.end[d];
    if (!side.empty()) f(side);
    rest.begin[d] = inner.begin[d], rest.end[d] = inner.end[d];
  }
}

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/overlap_ghosts_body.hpp>
#endif
