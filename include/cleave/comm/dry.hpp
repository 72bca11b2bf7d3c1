// The dry backend: one process stands for any rank of a world of any size, and nothing moves.
//
// For plans, bytes and memory of meshes that one does not have: traces see every collective;
// destinations keep whatever they held. `budget` runs a whole program so, training included, and
// says what it costs a rank.
#pragma once

#include <concepts>
#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/rank_function.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave {

/// Rank `rank` of a world of `size` ranks that do not exist.
///
/// Calls are verified as far as one rank can, traced, and not executed.
/// @throws Error if there is no such rank
template <std::same_as<Communicator> Result = Communicator>
std::shared_ptr<Result> dry_communicator(int rank, int size);

/// What a program costs one rank.
struct Budget {
  CommEvents communication{};  ///< by module, see `with_paths`
  MemoryStats memory{};        ///< of the rank's tensors

  index_t collectives() const { return communication.count(); }
  index_t messages() const { return communication.received_messages(); }
  index_t received_bytes() const { return communication.received_bytes(); }
  /// The most bytes that tensors of 4 KiB and more held at once.
  std::size_t peak_bytes() const noexcept { return memory.peak; }
};

namespace detail {

template <std::same_as<Communicator> Result = Communicator>
Budget dry_budget(int rank, int size, RankFunction f);

}  // namespace detail

/// What f(world) costs rank `rank` of `size` ranks, none of which exist.
///
///     const Budget cost = budget(12345, 16384, [](World& world) { .. });
///     CHECK(cost.peak_bytes() < 80e9);
///
/// f runs on a thread of its own, where operations compute nothing and tensors have extents,
/// placements and a size, but no memory: a model of any size takes the time of its calls. Elements
/// mean nothing, so f must not depend on them.
///
/// @throws what f throws
template <class F>
Budget budget(int rank, int size, F&& f) {
  return detail::dry_budget(rank, size, detail::RankFunction(f));
}

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/dry_body.hpp>
#endif
