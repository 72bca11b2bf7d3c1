// How ranks that read each other's memory run collectives: threads of one process, and processes of
// one node.
//
// After the entry barrier every rank copies or reduces directly from its peers' memory, and all
// ranks synchronise again before any source may change. Nothing is packed; reductions combine in
// rank order. Peers are visited from the next rank on, so that ranks do not all read the same
// memory at once. An error after the entry barrier fails the calls on all ranks. Calls that run
// together share the barriers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/pieces.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/kernels/host/reduce_views.hpp>
#include <cleave/tensor/linear_range.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// calls[r] is the call of rank r; the rank's own call is included.
using PeerCalls = std::span<const Collective* const>;

/// All collectives except reductions: copies from peers to the destination.
/// @param compares  whether transfers are compared with those of their senders
/// @throws Error if views or transfers of two ranks do not match
template <class Device>
void copy_from_peers(PeerCalls calls, int rank, bool compares) {
  const Collective& c = *calls[std::size_t(rank)];
  const int size = int(calls.size());
  for (int r = 0; compares && is_exchange(c.kind) && r < size; ++r)
    verify_transfers(c, calls[std::size_t(r)]->sends, rank, c.receives, r);
  each_received(c, rank, size, [&](int r, const Box& source, const Box& destination) {
    const Collective& theirs = *calls[std::size_t(r)];
    const bool scatters = c.kind == CollectiveKind::scatter;
    const Box& sent = scatters ? theirs.pieces[std::size_t(rank)] : source;
    if (c.kind == CollectiveKind::broadcast) {
      copy_checked<Device>(c, theirs.source, c.destination);
    } else if (!scatters && !is_exchange(c.kind)) {
      if (!destination.empty()) copy_checked<Device>(c, theirs.source, c.destination[destination]);
    } else if (!(scatters ? sent : destination).empty()) {
      verify_box(c, sent, theirs.source.extents, "source");
      copy_checked<Device>(c, theirs.source[sent], c.destination[destination]);
    }
  });
}

/// Reduces elements [begin, end) of the sources, or of a box of each, to those of `result`.
template <class Device>
void reduce_from_peers(PeerCalls calls, const View& result, index_t begin, index_t end,
                       std::vector<ConstView>& operands, const Box* box = nullptr) {
  operands.clear();
  for (const Collective* theirs : calls)
    operands.push_back(box == nullptr ? theirs->source : theirs->source[*box]);
  reduce_range(Device{}, calls[0]->op, operands, result, begin, end);
}

/// Reads one call, except an all_reduce in pieces.
/// @param result  of an all_reduce
template <class Device>
void read_from_peers(PeerCalls calls, int rank, bool compares, const View& result,
                     std::vector<ConstView>& operands) {
  const Collective& c = *calls[std::size_t(rank)];
  if (c.kind == CollectiveKind::all_reduce) {
    reduce_from_peers<Device>(calls, result, 0, result.size(), operands);
  } else if (c.kind == CollectiveKind::reduce_scatter) {
    const Box& piece = c.pieces[std::size_t(rank)];
    if (!piece.empty())
      reduce_from_peers<Device>(calls, c.destination, 0, c.destination.size(), operands, &piece);
  } else {
    copy_from_peers<Device>(calls, rank, compares);
  }
}

/// The points of collectives that ranks wait for.
enum class PeerPoint : std::uint8_t {
  ready,    ///< sources may be read
  reduced,  ///< the pieces of an all_reduce may be read, too
  done,     ///< no peer reads any more
};

/// The calls of a group after its entry barrier.
///
/// @tparam Carrier  how ranks find each other's calls and wait: `rank()`; `size()`;
///                  `calls_of(r)`, how many calls rank r has published; `call_of(r, i)`, one of
///                  them, until the next one of that rank is asked for; `compares_transfers()`;
///                  `short_bytes`: up to that length every rank reduces a whole all_reduce; longer
///                  ones cost one more step, in which each reduces a piece for all.
///                  `mark(point)`: this rank's device has reached the point; `await(point)`: later
///                  work of the device follows that of all peers up to the point; `take_step()`, a
///                  barrier; `report(error)`, before a step, and after it
///                  `verify_no_failure(call)`, which throws if a peer has reported an error
template <class Device, class Carrier>
class DirectReads {
 public:
  explicit DirectReads(Carrier& carrier) : carrier_(carrier), peers_(std::size_t(carrier.size())) {
    operands_.reserve(peers_.size());
  }

  /// Whether all all_reduces of calls that run together are reduced in pieces. A result has the
  /// same bits either way.
  static bool in_pieces(std::span<const Collective> calls) {
    return std::ranges::any_of(calls, [](const Collective& c) {
      return c.kind == CollectiveKind::all_reduce && c.source.bytes() > Carrier::short_bytes;
    });
  }

  /// How the published calls of two ranks differ; empty if they agree. The same on all ranks.
  std::string disagreement(const std::string& label) {
    for (int r = 1; r < carrier_.size(); ++r) {
      const std::size_t first = carrier_.calls_of(0), theirs = carrier_.calls_of(r);
      std::size_t i = 0;
      while (i < std::min(first, theirs) && agree(carrier_.call_of(0, i), carrier_.call_of(r, i)))
        ++i;
      if (i == first && i == theirs) continue;
      const auto what = [&](int rank, std::size_t count) {
        return "runs " + (i < count ? to_string(carrier_.call_of(rank, i)) : "nothing more");
      };
      return disagreement_message(label, 0, what(0, first), r, what(r, theirs));
    }
    return {};
  }

  /// @pre all ranks have published their calls, which agree, and passed the entry barrier
  /// @throws Error on all ranks if one of them fails
  void run(std::span<const Collective> calls) {
    const bool by_pieces = in_pieces(calls);
    std::shared_ptr<void> results;
    std::exception_ptr error;
    attempt(error, [&] {
      if (!by_pieces) results = scratch_for_results(calls);
      carrier_.await(PeerPoint::ready);
      std::size_t offset = 0;
      each_call(calls, [&](const Collective& c, PeerCalls peers) {
        const bool reduces = c.kind == CollectiveKind::all_reduce;
        if (reduces && by_pieces) return reduce_piece(peers, c.destination, carrier_.rank());
        read_from_peers<Device>(peers, carrier_.rank(), carrier_.compares_transfers(),
                                reduces ? result_of(c, results, offset) : View{}, operands_);
      });
    });
    if (by_pieces) {
      meet(PeerPoint::reduced, error);
      attempt(error, [&] {
        each_call(calls, [&](const Collective& c, PeerCalls peers) {
          if (c.kind == CollectiveKind::all_reduce) copy_pieces(c, peers);
        });
      });
    }
    // whatever failed, peers have enqueued work that reads this rank's memory, and it theirs
    std::exception_ptr unordered;
    meet(PeerPoint::done, unordered);
    if (error != nullptr) std::rethrow_exception(error);
    if (unordered != nullptr) std::rethrow_exception(unordered);
    carrier_.verify_no_failure(calls[0]);
    std::size_t offset = 0;
    for (const Collective& c : calls)
      if (c.kind == CollectiveKind::all_reduce && !by_pieces)
        strided_copy(Device{}, result_of(c, results, offset), c.destination);
  }

 private:
  /// Memory for the results of short all_reduces, whose destinations may be sources that peers
  /// read. On the host it is kept for later calls; on a device it is freed with the call, in stream
  /// order, because the next call may be on another stream, or captured.
  std::shared_ptr<void> scratch_for_results(std::span<const Collective> calls) {
    std::size_t bytes = 0;
    for (const Collective& c : calls)
      if (c.kind == CollectiveKind::all_reduce) bytes += result_bytes(c);
    if (!std::is_same_v<Device, Host>) return allocate_bytes(Device{}, bytes);
    if (bytes > kept_bytes_) kept_ = allocate_bytes(Device{}, bytes);
    kept_bytes_ = std::max(kept_bytes_, bytes);
    return kept_;
  }
  static std::size_t result_bytes(const Collective& c) {
    return (std::size_t(c.source.bytes()) + 63) / 64 * 64;
  }
  /// The next result, `offset` bytes after the first.
  static View result_of(const Collective& c, const std::shared_ptr<void>& results,
                        std::size_t& offset) {
    auto* const begin = static_cast<std::byte*>(results.get()) + offset;
    offset += result_bytes(c);
    return View::dense(begin, c.source.dtype, c.source.extents);
  }

  /// Calls visit(call, the same call of all ranks) for each call.
  template <class Visitor>
  void each_call(std::span<const Collective> calls, const Visitor& visit) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (int r = 0; r < carrier_.size(); ++r) peers_[std::size_t(r)] = &carrier_.call_of(r, i);
      visit(*peers_[std::size_t(carrier_.rank())], PeerCalls(peers_));
    }
  }

  /// The elements of an all_reduce that a rank reduces for all ranks, in whole cache lines.
  Box piece_of_rank(const Collective& c, int rank) const {
    return flat_piece(c.source.size(), rank, carrier_.size(), 64 / index_t(size_of(c.dtype())));
  }
  /// First step: reduces this rank's piece to its own destination. If that is also its source, no
  /// peer reads this piece of it.
  void reduce_piece(PeerCalls peers, const View& destination, int rank) {
    const Box piece = piece_of_rank(*peers[std::size_t(rank)], rank);
    reduce_from_peers<Device>(peers, destination, piece.begin[0], piece.end[0], operands_);
  }
  /// Second step: copies the pieces that the other ranks have reduced.
  void copy_pieces(const Collective& c, PeerCalls peers) {
    for (int k = 1; k < carrier_.size(); ++k) {
      const int r = (carrier_.rank() + k) % carrier_.size();
      const ConstView reduced = peers[std::size_t(r)]->destination;
      const Box piece = piece_of_rank(c, r);
      reduce_range(Device{}, c.op, {&reduced, 1}, c.destination, piece.begin[0], piece.end[0]);
    }
  }

  /// Runs work unless earlier work failed. Keeps its exception until no peer reads this rank's
  /// memory.
  template <class Work>
  void attempt(std::exception_ptr& error, const Work& work) {
    if (error != nullptr) return;
    try {
      work();
    } catch (const std::exception& e) {
      error = std::current_exception();
      carrier_.report(e.what());
    }
  }

  void meet(PeerPoint point, std::exception_ptr& error) {
    attempt(error, [&] { carrier_.mark(point); });
    carrier_.take_step();
    attempt(error, [&] { carrier_.await(point); });
  }

  Carrier& carrier_;
  std::vector<const Collective*> peers_;  ///< of the current call
  std::vector<ConstView> operands_{};     ///< of a reduction
  std::shared_ptr<void> kept_{};          ///< for results, on the host
  std::size_t kept_bytes_ = 0;
};

}  // namespace cleave::inline v0::detail
