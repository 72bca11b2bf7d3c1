// How a rank of the thread backend reads from its peers after all ranks have published their calls.
//
// Each function works for one rank and takes the calls of all ranks of the group, in rank order; it
// writes to that rank's destination only. Peers are visited starting at the right neighbour, so
// that ranks do not all read the same memory at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/kernels/host/reduce_views.hpp>
#include <cleave/tensor/linear_range.hpp>

namespace cleave::detail {

/// calls[r] is the call of rank r; the rank's own call is included.
using PeerCalls = std::span<const Collective* const>;

/// Calls visit(r, call of r) for all ranks, from the right neighbour cyclically to the rank itself.
template <class Visitor>
void for_peers(PeerCalls calls, int rank, Visitor visit) {
  const int n = int(calls.size());
  for (int k = 1; k <= n; ++k) {
    const int r = (rank + k) % n;
    visit(r, *calls[std::size_t(r)]);
  }
}

/// All collectives except reductions: copies from peers to the destination.
/// @param compares  whether transfers are compared with those of their senders
/// @throws Error if views or transfers of two ranks do not match
template <class Device>
void copy_from_peers(PeerCalls calls, int rank, bool compares) {
  const Collective& c = *calls[std::size_t(rank)];
  switch (c.kind) {
    case CollectiveKind::broadcast:
      if (rank != c.root)
        copy_checked<Device>(c, calls[std::size_t(c.root)]->source, c.destination);
      return;
    case CollectiveKind::scatter: {
      const Collective& root = *calls[std::size_t(c.root)];
      const Box& piece = root.pieces[std::size_t(rank)];
      if (!piece.empty()) copy_checked<Device>(c, root.source[piece], c.destination);
      return;
    }
    case CollectiveKind::gather:
      if (rank != c.root) return;
      [[fallthrough]];
    case CollectiveKind::all_gather:
      return for_peers(calls, rank, [&](int r, const Collective& theirs) {
        const Box& piece = c.pieces[std::size_t(r)];
        if (!piece.empty()) copy_checked<Device>(c, theirs.source, c.destination[piece]);
      });
    case CollectiveKind::all_to_all:
    case CollectiveKind::exchange:
      return for_peers(calls, rank, [&](int r, const Collective& theirs) {
        if (compares) verify_transfers(c, theirs.sends, rank, c.receives, r);
        for (const Transfer& t : c.receives) {
          if (t.peer != r || t.destination.empty()) continue;
          verify_box(c, t.source, theirs.source.extents, "source");
          copy_checked<Device>(c, theirs.source[t.source], c.destination[t.destination]);
        }
      });
    case CollectiveKind::barrier:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_reduce: return;
  }
}

/// reduce_scatter: reduces the rank's piece of all sources to its destination.
template <class Device>
void reduce_piece(PeerCalls calls, int rank, std::vector<ConstView>& operands) {
  const Collective& c = *calls[std::size_t(rank)];
  const Box& piece = c.pieces[std::size_t(rank)];
  if (piece.empty()) return;
  operands.clear();
  for (const Collective* theirs : calls) operands.push_back(theirs->source[piece]);
  reduce_range(Device{}, c.op, operands, c.destination, 0, c.destination.size());
}

/// all_reduce: reduces elements [begin, end) of all sources to the same elements of `result`.
template <class Device>
void reduce_elements(PeerCalls calls, const View& result, index_t begin, index_t end,
                     std::vector<ConstView>& operands) {
  operands.clear();
  for (const Collective* theirs : calls) operands.push_back(theirs->source);
  reduce_range(Device{}, calls[0]->op, operands, result, begin, end);
}

/// The elements of an all_reduce that rank `rank` of `size` reduces for all ranks: [begin, end), in
/// whole cache lines.
struct Share {
  index_t begin, end;

  Share(const Collective& c, int rank, int size) {
    const index_t count = c.source.size(), line = 64 / index_t(size_of(c.dtype()));
    const index_t each = ((count + size - 1) / size + line - 1) / line * line;
    begin = std::min(each * rank, count);
    end = std::min(begin + each, count);
  }
};

/// all_reduce, first step: reduces the rank's share of all sources to its own destination. If that
/// is also its source, no peer reads this share of it.
template <class Device>
void reduce_share(PeerCalls calls, int rank, std::vector<ConstView>& operands) {
  const Collective& c = *calls[std::size_t(rank)];
  const Share share(c, rank, int(calls.size()));
  reduce_elements<Device>(calls, c.destination, share.begin, share.end, operands);
}

/// all_reduce, second step: copies the shares that the other ranks have reduced.
template <class Device>
void copy_shares(PeerCalls calls, int rank) {
  const Collective& c = *calls[std::size_t(rank)];
  for_peers(calls, rank, [&](int r, const Collective& theirs) {
    const Share share(c, r, int(calls.size()));
    const ConstView reduced = theirs.destination;
    if (r != rank)
      reduce_range(Device{}, c.op, {&reduced, 1}, c.destination, share.begin, share.end);
  });
}

}  // namespace cleave::detail
