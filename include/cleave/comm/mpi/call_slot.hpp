// The slots of shared memory in which the ranks of a group on one node publish their calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/shared_memory/counter.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0::detail {

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

/// A call as far as other ranks need it.
struct MpiPublishedCall {
  CollectiveKind kind{};
  ReduceOp op{};
  std::int32_t root = 0;
  index_t global_count = 0;
  std::uint64_t detail = 0;
  MpiSharedView source{};
  MpiSharedView destination{};
};

/// The published calls of a rank.
struct MpiPublished {
  bool reachable = true;
  bool failed = false;
  std::int32_t count = 1;    ///< of calls that are run together
  std::int64_t listed = -1;  ///< where the list of several begins in the rank's segment
  MpiPublishedCall call{};   ///< a single one
};

/// What a rank states at the start of a call. Up to five dimensions take one cache line: the time
/// of a short call is that of fetching lines from the cores of the peers.
struct alignas(64) MpiArrival {
  SharedCounter progress{};
  DType dtype = DType::uint8;  ///< of a copied source
  std::int8_t dims = -1;       ///< likewise; -1: no elements
  std::uint64_t call = 0;      ///< of a short call, @see checksum_of; 0: the call is published
  std::array<index_t, max_dims> extents{};
};
static_assert(offsetof(MpiArrival, extents) + 5 * sizeof(index_t) <= 64);

/// The slot of a rank: for two rounds, since the next one may be published while peers still read
/// this one.
struct MpiSlot {
  alignas(64) SharedCounter barriers{};
  std::array<MpiArrival, 2> arrival{};
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
  MpiArrival& arrival(int r) const noexcept { return slots_[r].arrival[round_ & 1]; }
  MpiPublished& published(int r) const noexcept { return slots_[r].published[round_ & 1]; }
  Box& piece(int r) const noexcept { return slots_[r].piece[round_ & 1]; }
  std::byte* staging(int r) const noexcept { return slots_[r].staging[round_ & 1].data(); }

  /// The first barrier of a round, after this rank has set its arrival.
  /// @throws Error as `barrier`
  void meet(const MpiOpContext& context) {
    const auto progress = [this](int r) -> SharedCounter& { return arrival(r).progress; };
    synchronize(progress, std::uint32_t(round_), context);
  }

  /// A barrier: returns when all ranks have called it.
  /// @throws Error if a rank has failed or left, or does not arrive in time
  void barrier(const MpiOpContext& context) {
    const auto progress = [this](int r) -> SharedCounter& { return slots_[r].barriers; };
    synchronize(progress, ++barriers_, context);
  }

 private:
  /// Raises this rank's counter to `value` and waits until all ranks have done so.
  /// @param progress  that of rank r, as a callable
  template <class Progress>
  void synchronize(const Progress& progress, std::uint32_t value, const MpiOpContext& context) {
    progress(rank_).raise(value);
    const auto missing = [&](int r) { return !progress(r).has_reached(value); };
    MpiBackoff backoff(context, MpiBackoff::For::flags);
    for (int r = 0; r < size_; ++r)
      while (missing(r)) {
        backoff.rest(missing);
        if (backoff.sleeps()) progress(r).sleep_until(value);
      }
    context.detector->verify(context.operation);  // a rank may have given up waiting
  }

  MpiSlot* slots_;
  int rank_, size_;
  std::uint64_t round_ = 0;
  std::uint32_t barriers_ = 0;
};

}  // namespace cleave::inline v0::detail
