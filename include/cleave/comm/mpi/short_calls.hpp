// Short collectives of a group on one node: ranks copy their sources to the slots, pass one
// barrier, and read.
//
// No rank waits until its peers have read: a slot is written again only in the next call but one,
// which its owner starts after all ranks have reached the call in between. Besides its elements, a
// rank reads only one cache line of a peer, which has the counter of the barrier and a checksum of
// the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/call_slot.hpp>
#include <cleave/comm/shared_memory/reads.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// The longest source, in bytes, that is copied although peers could read it in place: a copy costs
/// less than a second barrier, which is slow where processes share cores.
inline std::size_t max_copied_bytes(const MpiPolls& polls) {
  return polls.flags.before_yield < 16 ? slot_bytes : 1024;
}

/// Of what ranks have to agree on: the fields of the call, and those from which they know that
/// each other's sources fit their destinations, which are the extents of the arrays that they
/// reduce, or of the pieces that they gather. Never 0.
inline std::uint64_t checksum_of(const Collective& c) {
  Checksum sum;
  sum.add(std::uint64_t(c.kind) << 8 | std::uint64_t(c.op));
  sum.add(std::uint64_t(c.dtype()) << 32 | std::uint32_t(c.root));
  sum.add(std::uint64_t(c.global_count));
  sum.add(c.detail);
  if (is_reduction(c.kind))
    for (const index_t extent : c.source.extents) sum.add(std::uint64_t(extent));
  if (c.kind == CollectiveKind::all_gather)
    for (const Box& piece : c.pieces)
      for (int d = 0; d < piece.dims(); ++d) sum.add(std::uint64_t(piece.extent(d)));
  return sum.sum != 0 ? sum.sum : 1;
}

class MpiShortCalls {
 public:
  explicit MpiShortCalls(MpiSlots& slots)
      : slots_(slots), calls_(std::size_t(slots.size())), peers_(calls_.size()) {
    for (std::size_t r = 0; r < calls_.size(); ++r) peers_[r] = &calls_[r];
  }

  /// Whether this rank copies its source; peers may decide otherwise, which costs a barrier.
  /// @param shared  whether peers can read it in place
  static bool takes(const Collective& c, bool shared, const MpiPolls& polls) {
    switch (c.kind) {
      case CollectiveKind::barrier: return true;
      case CollectiveKind::broadcast: {  // all ranks know the size, but not whether it is shared
        const ConstView known = holds_nothing(c.source) ? ConstView(c.destination) : c.source;
        return std::size_t(known.bytes()) <= max_copied_bytes(polls);
      }
      case CollectiveKind::scatter: return false;
      default:
        return holds_nothing(c.source) ||
               std::size_t(c.source.bytes()) <= (shared ? max_copied_bytes(polls) : slot_bytes);
    }
  }

  /// Copies the source, and states the call.
  /// @pre takes(c)
  void announce(const Collective& c) {
    MpiArrival& mine = slots_.arrival(slots_.rank());
    mine.call = checksum_of(c);
    mine.dtype = c.source.dtype;
    mine.dims = -1;
    if (holds_nothing(c.source)) return;
    pack_view(c.source, slots_.staging(slots_.rank()));
    mine.dims = std::int8_t(c.source.extents.dims);
    std::copy_n(c.source.extents.values.begin(), c.source.extents.dims, mine.extents.begin());
  }

  /// @pre all ranks have announced the same call
  /// @throws Error if a transfer does not fit its receiver, after announcing the failure to peers
  void read(const Collective& c, const MpiOpContext& context) {
    if (c.kind == CollectiveKind::barrier) return;
    for (int r = 0; r < slots_.size(); ++r)
      if (r != slots_.rank()) find_source(c, r);
    peers_[std::size_t(slots_.rank())] = &c;
    try {
      read_from_peers<Host>(peers_, slots_.rank(), false, c.destination, operands_);
    } catch (const std::exception& e) {
      context.detector->announce(e.what());
      throw;
    }
  }

 private:
  void find_source(const Collective& c, int r) {
    Collective& theirs = calls_[std::size_t(r)];
    theirs.op = c.op;
    ConstView& source = theirs.source;
    source.dtype = c.dtype();
    source.data = slots_.staging(r);
    if (is_reduction(c.kind)) {
      source.extents = c.source.extents;
    } else if (c.kind == CollectiveKind::all_gather) {
      source.extents = c.pieces[std::size_t(r)].extents();
    } else {
      const MpiArrival& stated = slots_.arrival(r);
      source.dtype = stated.dtype;
      if (stated.dims < 0) source.data = nullptr;
      source.extents.dims = std::max<int>(stated.dims, 0);
      std::copy_n(stated.extents.begin(), source.extents.dims, source.extents.values.begin());
    }
    source.strides = row_major_strides(source.extents);
  }

  MpiSlots& slots_;
  std::vector<Collective> calls_;  ///< of the peers, as far as they are needed
  std::vector<const Collective*> peers_;
  std::vector<ConstView> operands_;
};

}  // namespace cleave::inline v0::detail
