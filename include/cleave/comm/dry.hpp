// The dry backend: one process acts as any rank of a world of any size, and nothing is sent.
//
// For plans, bytes and memory of meshes that are not available: traces record every collective;
// destinations keep their contents. `budget` runs a whole program this way, training included, and
// reports its cost per rank.
#pragma once

#include <concepts>
#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0 {

/// Rank `rank` of a simulated world of `size` ranks.
///
/// Calls are verified as far as one rank can, and traced, but not executed.
/// @throws Error if the world has no such rank
template <std::same_as<Communicator> Result = Communicator>
std::shared_ptr<Result> dry_communicator(int rank, int size);

/// The cost of a program for one rank.
struct Budget {
  CommEvents communication{};  ///< by module, see `with_paths`
  MemoryStats memory{};        ///< of the rank's tensors

  index_t collectives() const { return communication.count(); }
  index_t messages() const { return communication.received_messages(); }
  index_t received_bytes() const { return communication.received_bytes(); }
  /// The peak memory of tensors of 4 KiB and more.
  std::size_t peak_bytes() const noexcept { return memory.peak; }
};

namespace detail {

template <std::same_as<Communicator> Result = Communicator>
Budget dry_budget(int rank, int size, RankFunction f);

}  // namespace detail

/// The cost of f(world) for rank `rank` of `size` simulated ranks.
///
///     const Budget cost = budget(12345, 16384, [](World& world) { .. });
///     CHECK(cost.peak_bytes() < 80e9);
///
/// f runs on its own thread, where operations compute nothing and tensors have extents, placements
/// and a size, but no memory: the time depends on the number of calls, not on the size of a model.
/// Elements are meaningless, so f must not depend on them.
///
/// @throws what f throws
template <class F>
Budget budget(int rank, int size, F&& f) {
  return detail::dry_budget(rank, size, detail::RankFunction(f));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/dry_body.hpp>
#endif
