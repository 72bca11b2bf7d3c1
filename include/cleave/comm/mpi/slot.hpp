// The slots of shared memory in which the ranks of a group on one node publish their calls.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/shared_counter.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::detail {

/// Bytes of elements in the slot of a rank, for each of two rounds.
inline constexpr std::size_t slot_bytes = 8192;

/// A view of memory in the segment of a process of the node.
struct MpiSharedView {
  std::int64_t offset = 0;
  std::int32_t place = -1;  ///< -1: no elements
  DType dtype = DType::uint8;
  Shape extents{};
  Shape strides{};
};

/// The fields of a call that ranks compare.
struct MpiCallHeader {
  CollectiveKind kind{};
  ReduceOp op{};
  std::int32_t root = 0;
  index_t global_count = 0;
  std::uint64_t detail = 0;

  static MpiCallHeader of(const Collective& c) {
    return {c.kind, c.op, c.root, c.global_count, c.detail};
  }
  friend bool operator==(const MpiCallHeader&, const MpiCallHeader&) = default;
};

/// One of several calls that are run together.
struct MpiListedCall {
  MpiCallHeader header{};
  MpiSharedView source{};
};

/// The published call of a rank.
struct MpiPublished {
  MpiCallHeader header{};
  bool reachable = true;
  bool failed = false;
  bool copied = false;       ///< the source is contiguous in the slot; no strides are published
  std::int32_t count = 1;    ///< of calls that are run together
  std::int64_t listed = -1;  ///< where the list of several begins in the rank's segment
  std::uint64_t layout = 0;  ///< of a copied source: @see checksum_of_layout
  MpiSharedView source{};
  MpiSharedView destination{};
};

/// The slot of a rank: for two rounds, since the next one may be published while peers still read
/// this one.
struct MpiSlot {
  alignas(64) SharedCounter barriers{};
  std::atomic<bool> gave_up{false};  ///< its owner has thrown while waiting for others
  alignas(64) std::array<MpiPublished, 2> published{};
  alignas(64) std::array<Box, 2> piece{};  ///< of a scatter: the root writes into all slots
  alignas(64) std::array<std::array<std::byte, slot_bytes>, 2> staging{};
};

/// The slots of a group, and this rank's progress in them.
class MpiSlots {
 public:
  MpiSlots(MpiSlot* slots, int rank, int size) : slots_(slots), rank_(rank), size_(size) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  void begin_round() noexcept { ++round_; }
  MpiPublished& published(int r) const noexcept { return slots_[r].published[round_ & 1]; }
  Box& piece(int r) const noexcept { return slots_[r].piece[round_ & 1]; }
  std::byte* staging(int r) const noexcept { return slots_[r].staging[round_ & 1].data(); }

  /// A barrier: returns when all ranks have called it.
  /// @throws Error if a rank has failed or left, does not arrive in time, or has given up waiting
  void barrier(const MpiOpContext& context) {
    slots_[rank_].barriers.raise(++barriers_);
    const auto missing = [&](int r) { return !slots_[r].barriers.has_reached(barriers_); };
    MpiBackoff backoff(context, MpiBackoff::For::flags);
    try {
      for (int r = 0; r < size_; ++r)
        while (missing(r)) {
          backoff.rest([&] { return world_ranks_where(missing, context); });
          if (backoff.sleeps()) slots_[r].barriers.sleep_until(barriers_);
        }
    } catch (...) {
      slots_[rank_].gave_up.store(true);
      throw;
    }
    // a rank that gave up announces why
    const auto gave_up = [&](int r) { return slots_[r].gave_up.load(std::memory_order_relaxed); };
    for (int r = 0; r < size_; ++r)
      while (gave_up(r)) backoff.rest([&] { return world_ranks_where(gave_up, context); });
  }

 private:
  template <class F>
  std::vector<int> world_ranks_where(const F& holds, const MpiOpContext& context) const {
    std::vector<int> ranks;
    for (int r = 0; r < size_; ++r)
      if (holds(r)) ranks.push_back(context.world_ranks[std::size_t(r)]);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  MpiSlot* slots_;
  int rank_, size_;
  std::uint64_t round_ = 0;
  std::uint32_t barriers_ = 0;
};

}  // namespace cleave::detail
