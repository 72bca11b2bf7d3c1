// Checks of a collective that one rank can make, and that two ranks can: shared by backends.
//
// All indices that a backend uses are checked first, whatever the check level: a wrong box would
// otherwise read or write memory that is not the caller's.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/require_reduction.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// The function that the user called, or the kind of the collective.
inline const char* operation_of(const Collective& c) {
  return c.operation[0] != '\0' ? c.operation : name_of(c.kind);
}

inline bool holds_nothing(const ConstView& view) {
  return view.data == nullptr || view.size() == 0;
}

/// "[5, 6] float32"
inline std::string to_string(const Shape& extents, DType dtype) {
  return to_string(extents) + " " + name_of(dtype);
}

/// @throws Error if a box reaches outside of a view with those extents
inline void verify_box(const Collective& c, const Box& box, const Shape& extents,
                       const char* what) {
  bool fits = box.dims() == extents.dims;
  for (int d = 0; d < box.dims(); ++d) {
    if (box.extent(d) <= 0) return;
    fits = fits && box.begin[d] >= 0 && box.end[d] <= extents[d];
  }
  if (!fits)
    throw Error(
        operation_of(c),
        "the box " + to_string(box.begin) + " to " + to_string(box.end) + " exceeds the " + what,
        {.shapes = to_string(extents)});
}

/// @throws Error if this rank's piece of `whole` and the view that it comes from or goes to differ
inline void verify_piece(const Collective& c, const Box& piece, const ConstView& whole,
                         const ConstView& view, const char* what) {
  if (piece.empty() && holds_nothing(view)) return;
  if (piece.extents() != view.extents || whole.dtype != view.dtype)
    throw Error(operation_of(c), std::string("this rank's piece does not match its ") + what,
                {.shapes = to_string(piece.extents(), whole.dtype) + " and " +
                           to_string(view.extents, view.dtype)});
}

/// Checks that a rank can make alone, before it communicates.
///
/// @throws Error for a root outside of the group, a reduction that does not exist, pieces or
/// transfers that exceed their views or do not match
inline void verify_call(const Collective& c, int rank, int size) {
  const auto fail = [&](const std::string& message) { throw Error(operation_of(c), message); };
  const auto verify_pieces = [&](const Shape& extents, const char* what) {
    if (int(c.pieces.size()) != size)
      fail(std::to_string(c.pieces.size()) + " pieces for " + std::to_string(size) + " ranks");
    for (const Box& piece : c.pieces) verify_box(c, piece, extents, what);
  };
  const auto verify_root = [&] {
    if (c.root < 0 || c.root >= size)
      fail("the root is rank " + std::to_string(c.root) + " of " + std::to_string(size));
  };
  switch (c.kind) {
    case CollectiveKind::barrier: return;
    case CollectiveKind::broadcast: return verify_root();
    case CollectiveKind::scatter:
      verify_root();
      if (rank == c.root) verify_pieces(c.source.extents, "source");
      return;
    case CollectiveKind::gather:
      verify_root();
      if (rank != c.root) return;
      [[fallthrough]];
    case CollectiveKind::all_gather:
      verify_pieces(c.destination.extents, "destination");
      return verify_piece(c, c.pieces[std::size_t(rank)], c.destination, c.source, "source");
    case CollectiveKind::reduce_scatter:
      require_reduction(operation_of(c), c.dtype(), c.op);
      verify_pieces(c.source.extents, "source");
      return verify_piece(c, c.pieces[std::size_t(rank)], c.source, c.destination, "destination");
    case CollectiveKind::all_reduce:
      require_reduction(operation_of(c), c.dtype(), c.op);
      if (c.source.extents != c.destination.extents || c.source.dtype != c.destination.dtype)
        throw Error(operation_of(c), "source and destination differ",
                    {.shapes = to_string(c.source.extents, c.source.dtype) + " and " +
                               to_string(c.destination.extents, c.destination.dtype)});
      return;
    case CollectiveKind::all_to_all:
    case CollectiveKind::exchange:
      for (const Transfer& t : c.sends) {
        if (t.peer < 0 || t.peer >= size) fail("there is no rank " + std::to_string(t.peer));
        verify_box(c, t.source, c.source.extents, "source");
      }
      for (const Transfer& t : c.receives) {
        if (t.peer < 0 || t.peer >= size) fail("there is no rank " + std::to_string(t.peer));
        verify_box(c, t.destination, c.destination.extents, "destination");
        if (t.source.extents() != t.destination.extents() && t.source.volume() != 0)
          throw Error(operation_of(c), "a transfer's source and destination have different extents",
                      {.shapes = to_string(t.source.extents()) + " and " +
                                 to_string(t.destination.extents())});
      }
      return;
  }
}

/// Whether the calls of two ranks match: same kind, size as far as it is known, detail and root;
/// same operands of a reduction.
inline bool agree(const Collective& a, const Collective& b) {
  if (a.kind != b.kind || a.global_count != b.global_count || a.detail != b.detail) return false;
  switch (a.kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
    case CollectiveKind::gather: return a.root == b.root;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_reduce:
      return a.op == b.op && a.dtype() == b.dtype() && a.source.extents == b.source.extents;
    default: return true;
  }
}

/// "all_reduce (sum) of [5, 6] float32", "broadcast of 30 elements from rank 1 at heat.cpp:41"
inline std::string to_string(const Collective& c) {
  std::string text = name_of(c.kind);
  if (!is_reduction(c.kind) && c.global_count > 0)
    text += " of " + std::to_string(c.global_count) + " elements";
  if (c.kind == CollectiveKind::broadcast || c.kind == CollectiveKind::scatter)
    text += " from rank " + std::to_string(c.root);
  else if (c.kind == CollectiveKind::gather) text += " to rank " + std::to_string(c.root);
  else if (is_reduction(c.kind))
    text += std::string(" (") + name_of(c.op) + ") of " + to_string(c.source.extents, c.dtype());
  if (!is_rooted(c.kind)) text += detail_to_string(c.kind, c.detail);
  return text + to_string(c.site);
}

/// Compares the transfers of `peer` to `rank` with those that `rank` expects from it.
/// @throws Error if they differ
inline void verify_transfers(const Collective& c, std::span<const Transfer> sends, int rank,
                             std::span<const Transfer> receives, int peer) {
  std::size_t s = 0, r = 0;
  for (;; ++s, ++r) {
    while (s < sends.size() && sends[s].peer != rank) ++s;
    while (r < receives.size() && receives[r].peer != peer) ++r;
    if (s == sends.size() && r == receives.size()) return;
    if (s == sends.size() || r == receives.size() || !(sends[s].source == receives[r].source) ||
        !(sends[s].destination == receives[r].destination))
      throw Error(operation_of(c), "the transfers from rank " + std::to_string(peer) + " to rank " +
                                       std::to_string(rank) +
                                       " differ from those that the receiver expects");
  }
}

/// @throws Error if the sender's view and the receiver's do not match
inline void verify_fit(const Collective& c, const ConstView& from, const View& to) {
  if (holds_nothing(from) && holds_nothing(to)) return;
  if (from.extents != to.extents || from.dtype != to.dtype)
    throw Error(operation_of(c), "the sender's view does not match the receiver's",
                {.shapes = to_string(from.extents, from.dtype) + " and " +
                           to_string(to.extents, to.dtype)});
}

/// `strided_copy` between ranks. @throws Error if the views do not match
template <class Device>
void copy_checked(const Collective& c, const ConstView& from, const View& to) {
  verify_fit(c, from, to);
  if (from.data == to.data) return;
  if constexpr (std::is_same_v<Device, Host>)
    strided_copy(from, to, std::size_t(c.destination.bytes()));
  else strided_copy(Device{}, from, to);
}

/// The place of the calling rank in a subgroup.
/// @throws Error if the list names a rank twice or one that does not exist, or lacks this one
inline int place_in_subgroup(const Communicator& group, std::span<const int> ranks) {
  const auto fail = [&](int rank, const char* problem) {
    throw Error("subgroup",
                "rank " + std::to_string(rank) + problem + ", in a group of the " +
                    std::to_string(group.size()) + " ranks of '" + group.label() + "'",
                {.rank = group.state().world_rank});
  };
  int place = -1;
  std::vector<bool> listed(std::size_t(group.size()), false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i];
    if (rank < 0 || rank >= group.size()) fail(rank, " does not exist");
    if (listed[std::size_t(rank)]) fail(rank, " is listed twice");
    listed[std::size_t(rank)] = true;
    if (rank == group.rank()) place = int(i);
  }
  if (place < 0) fail(group.rank(), " is not in its own list");
  return place;
}

}  // namespace cleave::inline v0::detail
