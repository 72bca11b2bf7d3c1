// Short collectives on two levels: one or two more copies, but as few synchronisations as possible.
//
// Data for others, and from others, are packed as [place][node], so that the part of a column is
// contiguous: this takes one call of the node, whose sources fit into its slots, and one call of
// the column.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/node_grid.hpp>
#include <cleave/comm/mpi/two_level_parts.hpp>
#include <cleave/comm/mpi/workspace.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// The longest array, in bytes, that is gathered or reduced here. Small in tests.
inline index_t two_level_short_bytes = 32 << 10;

/// @tparam Group  as for MpiTwoLevel
template <class Group>
class MpiTwoLevelShort {
 public:
  /// @param grid, node, column  must outlive this
  MpiTwoLevelShort(const NodeGrid& grid, Group& node, Group& column)
      : grid_(grid), node_(node), column_(column) {}

  /// Whether a call is run here: the same on all ranks.
  bool takes(const Collective& c) const {
    const auto ranks = index_t(grid_.ranks.size()), size = index_t(size_of(c.dtype()));
    switch (c.kind) {
      case CollectiveKind::all_gather: return c.destination.bytes() <= two_level_short_bytes;
      case CollectiveKind::reduce_scatter: return c.source.bytes() <= two_level_short_bytes;
      case CollectiveKind::all_to_all:
        return c.even && c.global_count >= ranks * ranks &&
               is_worth_forwarding(std::size_t(c.global_count / (ranks * ranks) * size));
      default: return false;
    }
  }

  /// @pre takes(c)
  void run(const Collective& c) {
    scratch_.clear();  // left by a call that failed
    switch (c.kind) {
      case CollectiveKind::all_gather: all_gather(c); break;
      case CollectiveKind::reduce_scatter: reduce_scatter(c); break;
      default: all_to_all(c);
    }
    scratch_.clear();
  }

 private:
  /// Whether parts of this length go by way of the column: in fewer messages (or, between far
  /// nodes, in as many over fewer connections), none of which waits for a reply, and the copies
  /// cost less than these messages. Each copy has `most` bytes or less.
  bool is_worth_forwarding(std::size_t part) const {
    constexpr std::size_t longest_part = std::size_t(32) << 10, most = std::size_t(2) << 20;
    const auto messages = [](std::size_t bytes) {
      return (bytes + eager_part() - 1) / eager_part();
    };
    const std::size_t places = std::size_t(grid_.places), passed = places * part;
    return part <= longest_part && part * grid_.ranks.size() <= most &&
           messages(passed) < places * messages(part) + (column_.is_far() ? 1 : 0) &&
           (passed <= eager_part() || column_.sends_in_parts(passed));
  }

  View scratch(DType type, index_t count) { return scratch_view(scratch_, type, count); }

  /// Memory for the pieces of all ranks, as [place][node].
  View scratch_for_pieces(const Collective& c) {
    order_.arrange(c.pieces, grid_.places, grid_.nodes, grid_.place,
                   [&](int place, int node) { return grid_.at(node, place); });
    return scratch(c.dtype(), order_.count());
  }

  /// The column gathers the pieces of its ranks, and the node the pieces of its columns.
  void all_gather(const Collective& c) {
    const View all = scratch_for_pieces(c);
    const View column = part_of(all, order_.ranges()[std::size_t(grid_.place)]);
    const View mine = part_of(column, order_.own()[std::size_t(grid_.node)]);
    pack_view(c.source, mine.data);
    Collective call = part_of_call(c, CollectiveKind::all_gather);
    call.source = mine;
    call.destination = column;
    call.pieces = order_.own();
    column_.relay({&call, 1});
    call.source = column;
    call.destination = all;
    call.pieces = order_.ranges();
    node_.relay({&call, 1});
    order_.each(
        all, [&](const std::byte* copy, const Box& box) { unpack_view(copy, c.destination[box]); });
  }

  /// The node reduces the pieces of column p on its rank p, and columns reduce the results.
  void reduce_scatter(const Collective& c) {
    const View all = scratch_for_pieces(c);
    order_.each(all, [&](std::byte* copy, const Box& box) { pack_view(c.source[box], copy); });
    const DType type = c.source.dtype;
    Collective call = part_of_call(c, CollectiveKind::reduce_scatter);
    call.source = all;
    call.destination = scratch(type, order_.ranges()[std::size_t(grid_.place)].volume());
    call.pieces = order_.ranges();
    node_.relay({&call, 1});
    const View result = part_of(all, order_.own()[std::size_t(grid_.node)]);  // no longer read
    call.source = call.destination;
    call.destination = result;
    call.pieces = order_.own();
    column_.relay({&call, 1});
    unpack_view(result.data, c.destination);
  }

  /// A rank passes its data for column p to rank p of its node, which then has the data of its node
  /// for its column, as [node][place][elements] of the receiving node and of the senders; the
  /// columns exchange these. Data that are in this order are read and received in place.
  void all_to_all(const Collective& c) {
    const index_t elements = c.sends[0].source.volume();
    const DType type = c.source.dtype;
    const Shape extents(std::array<index_t, 3>{grid_.nodes, grid_.places, elements});
    const index_t bytes = elements * index_t(size_of(type));
    const auto offset = [&](int peer) {
      return (grid_.node_of(peer) * index_t(grid_.places) + grid_.place_of(peer)) * bytes;
    };
    const auto dense = [&](void* data) { return View::dense(data, type, extents); };
    const auto allocate = [&] {
      return static_cast<std::byte*>(scratch(type, extents.product()).data);
    };
    const auto in = [&](const Transfer& t) { return c.source[t.source]; };
    const auto out = [&](const Transfer& t) { return c.destination[t.destination]; };

    std::byte* copy = nullptr;
    const void* packed = place_in_order(c.sends, in, offset);
    if (packed == nullptr) {
      packed = copy = allocate();
      for (const Transfer& t : c.sends) pack_view(in(t), copy + offset(t.peer));
    }
    const auto box = [&](index_t node, index_t nodes, index_t place, index_t places) {
      return Box{Shape(std::array<index_t, 3>{node, place, 0}),
                 Shape(std::array<index_t, 3>{node + nodes, place + places, elements})};
    };
    Collective part = part_of_call(c, CollectiveKind::exchange);
    std::vector<Transfer> sends, receives;
    for (int p = 0; p < grid_.places; ++p) {
      sends.push_back({p, box(0, grid_.nodes, p, 1), box(0, grid_.nodes, grid_.place, 1)});
      receives.push_back({p, box(0, grid_.nodes, grid_.place, 1), box(0, grid_.nodes, p, 1)});
    }
    const View passed = dense(allocate());
    pass(node_, part, ConstView::dense(packed, type, extents), passed, sends, receives);

    void* received = const_cast<void*>(place_in_order(c.receives, out, offset));
    const bool unpacks = received == nullptr;
    if (unpacks && copy == nullptr) copy = allocate();
    if (unpacks) received = copy;
    sends.clear(), receives.clear();
    for (int n = 0; n < grid_.nodes; ++n) {
      sends.push_back({n, box(n, 1, 0, grid_.places), box(grid_.node, 1, 0, grid_.places)});
      receives.push_back({n, box(grid_.node, 1, 0, grid_.places), box(n, 1, 0, grid_.places)});
    }
    pass(column_, part, passed, dense(received), sends, receives);
    if (!unpacks) return;
    for (const Transfer& t : c.receives) unpack_view(copy + offset(t.peer), out(t));
  }

  /// Where the blocks of all transfers begin, if each is contiguous and at its offset; else null.
  template <class Block, class Offset>
  static const void* place_in_order(std::span<const Transfer> transfers, const Block& block,
                                    const Offset& offset) {
    const auto begin = [&](const Transfer& t) {
      return static_cast<const std::byte*>(block(t).data) - offset(t.peer);
    };
    for (const Transfer& t : transfers)
      if (!block(t).contiguous() || begin(t) != begin(transfers[0])) return nullptr;
    return begin(transfers[0]);
  }

  static void pass(Group& group, Collective call, const ConstView& from, const View& to,
                   std::span<const Transfer> sends, std::span<const Transfer> receives) {
    call.source = from;
    call.destination = to;
    call.sends = sends;
    call.receives = receives;
    group.relay({&call, 1});
  }

  const NodeGrid& grid_;
  Group& node_;
  Group& column_;
  PieceOrder order_;
  MpiScratch scratch_;
};

}  // namespace cleave::detail
