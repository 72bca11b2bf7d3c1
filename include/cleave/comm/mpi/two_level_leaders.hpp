// Collectives on two levels that are so short that the messages of a column cost more than the
// elements: rank 0 of each node, its leader, communicates for all ranks of the node.
//
// The ranks of a node pass their elements to the leader, column 0 communicates, and the ranks read
// the result from their leader: two barriers of the node, and as few messages as possible.
#pragma once

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

/// The longest array, in bytes, that leaders handle. Small in tests.
inline index_t max_leader_bytes = 8 << 10;

/// @tparam Group  as for MpiTwoLevel
template <class Group>
class MpiTwoLevelLeaders {
 public:
  /// @param grid, node, column  must outlive this
  MpiTwoLevelLeaders(const NodeGrid& grid, Group& node, Group& column)
      : grid_(grid), node_(node), column_(column) {}

  /// Whether a call is run here: the same on all ranks.
  static bool takes(const Collective& c) {
    switch (c.kind) {
      case CollectiveKind::all_gather: return c.destination.bytes() <= max_leader_bytes;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce: return c.source.bytes() <= max_leader_bytes;
      default: return false;
    }
  }

  /// @pre takes(c)
  void run(const Collective& c) {
    scratch_.clear();
    switch (c.kind) {
      case CollectiveKind::all_gather: return all_gather(c);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      default: return all_reduce(c);
    }
  }

 private:
  void all_gather(const Collective& c) {
    const View all = scratch_for_pieces(c);
    const View row = here(all);
    const View mine = part_of(row, order_.own()[std::size_t(grid_.place)]);
    pack_view(c.source, mine.data);
    Collective call = part_of_call(c, CollectiveKind::all_gather);
    call.source = mine;
    call.destination = row;
    call.pieces = order_.own();
    node_.relay({&call, 1});
    if (leads()) {
      call.source = row;
      call.destination = all;
      call.pieces = order_.ranges();
      column_.relay({&call, 1});
    }
    read_from_leader(call, all, all);
    order_.each(
        all, [&](const std::byte* copy, const Box& box) { unpack_view(copy, c.destination[box]); });
  }

  void reduce_scatter(const Collective& c) {
    const View all = scratch_for_pieces(c);
    order_.each(all, [&](std::byte* copy, const Box& box) { pack_view(c.source[box], copy); });
    const View sum = reduce_at_leader(c, all);
    const View row = here(all);  // no longer read
    Collective call = part_of_call(c, CollectiveKind::reduce_scatter);
    if (leads()) {
      call.source = sum;
      call.destination = row;
      call.pieces = order_.ranges();
      column_.relay({&call, 1});
    }
    read_from_leader(call, row, row);
    unpack_view(part_of(row, order_.own()[std::size_t(grid_.place)]).data, c.destination);
  }

  void all_reduce(const Collective& c) {
    const index_t elements = c.source.size();
    if (elements == 0) return;
    const View all = scratch(c.source.dtype, elements);
    pack_view(c.source, all.data);
    const View sum = reduce_at_leader(c, all);
    Collective call = part_of_call(c, CollectiveKind::all_reduce);
    if (leads()) {
      call.source = sum;
      call.destination = sum;
      column_.relay({&call, 1});
    }
    read_from_leader(call, sum, all);
    unpack_view(all.data, c.destination);
  }

  bool leads() const noexcept { return grid_.place == 0; }

  View scratch(DType type, index_t count) { return scratch_view(scratch_, type, count); }

  /// Memory for the pieces of all ranks, as [node][place].
  View scratch_for_pieces(const Collective& c) {
    order_.arrange(c.pieces, grid_.nodes, grid_.places, grid_.node,
                   [&](int node, int place) { return grid_.at(node, place); });
    return scratch(c.dtype(), order_.count());
  }

  /// The pieces of this node.
  View here(const View& all) const {
    return part_of(all, order_.ranges()[std::size_t(grid_.node)]);
  }

  /// Pieces that give everything to the leader and nothing to other ranks.
  std::span<const Box> pieces_of_leader(index_t count) {
    leader_.assign(std::size_t(grid_.places), linear_interval(0, 0));
    leader_[0].end[0] = count;
    return leader_;
  }

  /// @return on the leader the reduction over the ranks of this node; elsewhere an empty view
  View reduce_at_leader(const Collective& c, const View& all) {
    const View sum = scratch(all.dtype, leads() ? all.size() : 0);
    Collective call = part_of_call(c, CollectiveKind::reduce_scatter);
    call.source = all;
    call.destination = sum;
    call.pieces = pieces_of_leader(all.size());
    node_.relay({&call, 1});
    return sum;
  }

  /// @param result  on the leader; not read elsewhere
  void read_from_leader(const Collective& c, const View& result, const View& destination) {
    Collective call = part_of_call(c, CollectiveKind::all_gather);
    call.source = leads() ? result : part_of(result, linear_interval(0, 0));
    call.destination = destination;
    call.pieces = pieces_of_leader(destination.size());
    node_.relay({&call, 1});
  }

  const NodeGrid& grid_;
  Group& node_;
  Group& column_;
  PieceOrder order_;
  std::vector<Box> leader_;
  MpiScratch scratch_;
};

}  // namespace cleave::detail
