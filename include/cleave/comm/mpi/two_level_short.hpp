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
               c.global_count * size <= max_forwarded_bytes * ranks * ranks;
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
  /// The longest transfer, in bytes, that is worth forwarding.
  static constexpr index_t max_forwarded_bytes = 2 << 10;

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

  /// A rank passes its data for column p to rank p of its node, as [place][node][elements] of the
  /// receivers; after an exchange in the columns, it has its data as [place][node][elements] of the
  /// senders.
  void all_to_all(const Collective& c) {
    const index_t elements = c.sends[0].source.volume();
    const DType type = c.source.dtype;
    const Shape extents(std::array<index_t, 3>{grid_.places, grid_.nodes, elements});
    const View packed = View::dense(scratch(type, extents.product()).data, type, extents);
    const View passed = View::dense(scratch(type, extents.product()).data, type, extents);
    const index_t bytes = elements * index_t(size_of(type));
    const auto block = [&](const View& view, int peer) {
      const index_t at = grid_.place_of(peer) * grid_.nodes + grid_.node_of(peer);
      return static_cast<std::byte*>(view.data) + at * bytes;
    };
    for (const Transfer& t : c.sends) pack_view(c.source[t.source], block(packed, t.peer));

    const auto places = [&](index_t from, index_t to) {
      return Box{Shape(std::array<index_t, 3>{from, 0, 0}),
                 Shape(std::array<index_t, 3>{to, grid_.nodes, elements})};
    };
    Collective here = part_of_call(c, CollectiveKind::exchange);
    std::vector<Transfer> sends, receives;
    for (int p = 0; p < grid_.places; ++p) {
      sends.push_back({p, places(p, p + 1), places(grid_.place, grid_.place + 1)});
      receives.push_back({p, places(grid_.place, grid_.place + 1), places(p, p + 1)});
    }
    pass(node_, here, packed, passed, sends, receives);

    const auto nodes = [&](index_t n) {
      return Box{Shape(std::array<index_t, 3>{0, n, 0}),
                 Shape(std::array<index_t, 3>{grid_.places, n + 1, elements})};
    };
    sends.clear(), receives.clear();
    for (int n = 0; n < grid_.nodes; ++n) {
      sends.push_back({n, nodes(n), nodes(grid_.node)});
      receives.push_back({n, nodes(grid_.node), nodes(n)});
    }
    pass(column_, here, passed, packed, sends, receives);
    for (const Transfer& t : c.receives)
      unpack_view(block(packed, t.peer), c.destination[t.destination]);
  }

  static void pass(Group& group, Collective call, const View& from, const View& to,
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
