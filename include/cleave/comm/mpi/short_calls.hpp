// Short collectives of a group on one node: ranks copy their sources to the slots, pass one
// barrier, and read.
//
// No rank waits until its peers have read: a slot is written again only in the next call but one,
// which its owner starts after all ranks have reached the call in between. Besides its elements, a
// rank reads and compares only a cache line or two of a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/backoff.hpp>
#include <cleave/comm/mpi/slot.hpp>
#include <cleave/comm/thread/reads.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::detail {

/// The longest source, in bytes, that is copied although peers could read it in place: a copy costs
/// less than a second barrier, which is slow where processes share cores.
inline std::size_t max_copied_bytes() { return mpi_polls().flags < 16 ? slot_bytes : 1024; }

/// Of what ranks have to agree on to know each other's sources, and that these fit their
/// destinations: the extents of the arrays that they reduce, or of the pieces that they gather.
inline std::uint64_t checksum_of_layout(const Collective& c) {
  std::uint64_t sum = std::uint64_t(c.dtype()) + 1;
  const auto add = [&sum](index_t number) { sum = (sum ^ std::uint64_t(number)) * 1099511628211u; };
  if (c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter)
    for (const index_t extent : c.source.extents) add(extent);
  if (c.kind == CollectiveKind::all_gather)
    for (const Box& piece : c.pieces)
      for (int d = 0; d < piece.dims(); ++d) add(piece.extent(d));
  return sum;
}

class MpiShortCalls {
 public:
  explicit MpiShortCalls(MpiSlots& slots)
      : slots_(slots), calls_(std::size_t(slots.size())), peers_(calls_.size()) {
    for (std::size_t r = 0; r < calls_.size(); ++r) peers_[r] = &calls_[r];
  }

  /// Whether this rank copies its source; peers may decide otherwise.
  /// @param shared  whether peers can read it in place
  static bool takes(const Collective& c, bool shared) {
    switch (c.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce:
      case CollectiveKind::all_to_all:
      case CollectiveKind::exchange: break;
      default: return false;
    }
    return holds_nothing(c.source) ||
           std::size_t(c.source.bytes()) <= (shared ? max_copied_bytes() : slot_bytes);
  }

  /// Publishes a call whose source is copied: writes only the fields that peers read.
  /// @param place, segment  the process whose segment holds the slots, and where that begins
  /// @pre takes(c)
  void publish(const Collective& c, std::int32_t place, const std::byte* segment) {
    MpiPublished& mine = slots_.published(slots_.rank());
    mine.header = MpiCallHeader::of(c);
    mine.reachable = mine.copied = true;
    mine.failed = false;
    mine.count = 1;
    mine.layout = checksum_of_layout(c);
    mine.source.place = -1;
    mine.source.dtype = c.source.dtype;
    mine.source.extents = c.source.extents;
    if (holds_nothing(c.source)) return;
    std::byte* const memory = slots_.staging(slots_.rank());
    pack_view(c.source, memory);
    mine.source.place = place;
    mine.source.offset = memory - segment;
  }

  /// After the barrier: whether all ranks have copied their sources, and agree.
  bool agree() const {
    const MpiPublished& mine = slots_.published(slots_.rank());
    for (int r = 0; r < slots_.size(); ++r) {
      const MpiPublished& theirs = slots_.published(r);
      if (!theirs.copied || theirs.count != 1 || theirs.header != mine.header ||
          theirs.layout != mine.layout)
        return false;
    }
    return true;
  }

  /// @pre agree()
  /// @throws Error if a transfer does not fit its receiver, after announcing the failure to peers
  void read(const Collective& c, const MpiOpContext& context) {
    for (int r = 0; r < slots_.size(); ++r)
      if (r != slots_.rank()) find_source(c, r);
    peers_[std::size_t(slots_.rank())] = &c;
    try {
      switch (c.kind) {
        case CollectiveKind::reduce_scatter:
          return reduce_piece<Host>(peers_, slots_.rank(), operands_);
        case CollectiveKind::all_reduce:
          return reduce_elements<Host>(peers_, c.destination, 0, c.source.size(), operands_);
        default: return copy_from_peers<Host>(peers_, slots_.rank(), false);
      }
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
    switch (c.kind) {
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce: source.extents = c.source.extents; break;
      case CollectiveKind::all_gather: source.extents = c.pieces[std::size_t(r)].extents(); break;
      default:
        source.extents = slots_.published(r).source.extents;
        source.dtype = slots_.published(r).source.dtype;
        if (slots_.published(r).source.place < 0) source.data = nullptr;
    }
    source.strides = row_major_strides(source.extents);
  }

  MpiSlots& slots_;
  std::vector<Collective> calls_;  ///< of the peers, as far as they are needed
  std::vector<const Collective*> peers_;
  std::vector<ConstView> operands_;
};

}  // namespace cleave::detail
