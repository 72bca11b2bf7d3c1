// Short collectives on two levels: ranks wait for each other as rarely as they can, for a copy or
// two more.
//
// What a rank has for others, or gets, is packed by [place][node], so that the part of a column
// lies in one piece: one call of the node, on sources that are short enough for its slots, and one
// of the column.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/node_grid.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

inline View flat_view(void* data, DType type, index_t count) {
  return View::dense(data, type, Shape(std::array<index_t, 1>{count}));
}
inline ConstView flat_view(const void* data, DType type, index_t count) {
  return ConstView::dense(data, type, Shape(std::array<index_t, 1>{count}));
}

/// Indices [begin, end) of a flat view.
inline Box linear_interval(index_t begin, index_t end) {
  return {Shape(std::array<index_t, 1>{begin}), Shape(std::array<index_t, 1>{end})};
}

/// A call of a group as one of its node or its column.
inline Collective part_of_call(const Collective& c, CollectiveKind kind) {
  Collective part;
  part.kind = kind;
  part.op = c.op;
  part.operation = c.operation;
  part.axes = c.axes;
  return part;
}

/// The longest array, in bytes, that is gathered or reduced so. Small in tests.
inline index_t two_level_short_bytes = 32 << 10;

/// @tparam Group  as of MpiTwoLevel
template <class Group>
class MpiTwoLevelShort {
 public:
  /// @param grid, node, column  must outlive this
  MpiTwoLevelShort(const NodeGrid& grid, Group& node, Group& column)
      : grid_(grid), node_(node), column_(column) {}

  /// Whether a call is to be run here: the same on all ranks.
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
    switch (c.kind) {
      case CollectiveKind::all_gather: return all_gather(c);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      default: return all_to_all(c);
    }
  }

 private:
  /// The longest transfer that is worth a stop on its way.
  static constexpr index_t max_forwarded_bytes = 2 << 10;

  /// A copy of the pieces of all ranks.
  struct Packed {
    std::vector<Box> columns{};  ///< the range of every column
    std::vector<Box> own{};      ///< that of every node in this rank's column, which begins at 0
    std::vector<Box> ranks{};    ///< by [place][node]
    std::shared_ptr<void> memory{};
    View all{};

    View of(int place, int node, int nodes) const {
      return all[ranks[std::size_t(place) * std::size_t(nodes) + std::size_t(node)]];
    }
  };

  const Box& piece(const Collective& c, int node, int place) const {
    return c.pieces[std::size_t(grid_.at(node, place))];
  }

  Packed scratch_for_pieces(const Collective& c) const {
    Packed packed;
    index_t at = 0;
    for (int p = 0; p < grid_.places; ++p) {
      const index_t begin = at;
      for (int n = 0; n < grid_.nodes; ++n) {
        const index_t count = piece(c, n, p).volume();
        packed.ranks.push_back(linear_interval(at, at + count));
        if (p == grid_.place) packed.own.push_back(linear_interval(at - begin, at - begin + count));
        at += count;
      }
      packed.columns.push_back(linear_interval(begin, at));
    }
    packed.memory = allocate_bytes(Host{}, std::size_t(at) * size_of(c.dtype()));
    packed.all = flat_view(packed.memory.get(), c.dtype(), at);
    return packed;
  }

  /// Calls f(range of the copy with the extents of the piece, piece) for all that are not empty.
  template <class F>
  void each_piece(const Collective& c, const Packed& packed, const F& f) const {
    for (int p = 0; p < grid_.places; ++p)
      for (int n = 0; n < grid_.nodes; ++n)
        if (const Box& box = piece(c, n, p); !box.empty())
          f(View::dense(packed.of(p, n, grid_.nodes).data, packed.all.dtype, box.extents()), box);
  }

  /// The column gathers what its ranks have, and the node what its columns have.
  void all_gather(const Collective& c) {
    const Packed packed = scratch_for_pieces(c);
    const View column = packed.all[packed.columns[std::size_t(grid_.place)]];
    const DType type = packed.all.dtype;
    const index_t count = piece(c, grid_.node, grid_.place).volume();
    const std::shared_ptr<void> mine = allocate_bytes(Host{}, std::size_t(count) * size_of(type));
    if (count > 0) strided_copy(c.source, View::dense(mine.get(), type, c.source.extents));
    Collective call = part_of_call(c, CollectiveKind::all_gather);
    call.source = flat_view(mine.get(), type, count);
    call.destination = column;
    call.pieces = packed.own;
    column_.relay({&call, 1});
    call.source = column;
    call.destination = packed.all;
    call.pieces = packed.columns;
    node_.relay({&call, 1});
    each_piece(c, packed, [&](const View& copy, const Box& box) {
      strided_copy(ConstView(copy), c.destination[box]);
    });
  }

  /// The node reduces for column p at its rank p, and columns reduce that.
  void reduce_scatter(const Collective& c) {
    const Packed packed = scratch_for_pieces(c);
    each_piece(c, packed,
               [&](const View& copy, const Box& box) { strided_copy(c.source[box], copy); });
    const DType type = c.source.dtype;
    const index_t count = packed.columns[std::size_t(grid_.place)].volume();
    const std::shared_ptr<void> column = allocate_bytes(Host{}, std::size_t(count) * size_of(type));
    Collective call = part_of_call(c, CollectiveKind::reduce_scatter);
    call.source = packed.all;
    call.destination = flat_view(column.get(), type, count);
    call.pieces = packed.columns;
    node_.relay({&call, 1});
    const View result = packed.of(grid_.place, grid_.node, grid_.nodes);
    call.source = call.destination;
    call.destination = result;
    call.pieces = packed.own;
    column_.relay({&call, 1});
    if (result.size() > 0)
      strided_copy(ConstView::dense(result.data, type, c.destination.extents), c.destination);
  }

  /// A rank hands what it sends to column p to rank p of its node, [place][node][elements]; columns
  /// exchange, and every rank has what it is sent, [place][node][elements] of the senders.
  void all_to_all(const Collective& c) {
    const index_t elements = c.sends[0].source.volume();
    const DType type = c.source.dtype;
    const Shape extents(std::array<index_t, 3>{grid_.places, grid_.nodes, elements});
    const auto bytes = std::size_t(extents.product()) * size_of(type);
    const std::shared_ptr<void> first = allocate_bytes(Host{}, bytes),
                                second = allocate_bytes(Host{}, bytes);
    const View packed = View::dense(first.get(), type, extents);
    const View passed = View::dense(second.get(), type, extents);
    const auto block = [&](const View& view, int peer, const Shape& shape) {
      const index_t at = grid_.place_of(peer) * grid_.nodes + grid_.node_of(peer);
      return View::dense(
          static_cast<std::byte*>(view.data) + at * elements * index_t(size_of(type)), type, shape);
    };
    for (const Transfer& t : c.sends)
      strided_copy(c.source[t.source], block(packed, t.peer, t.source.extents()));

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
      strided_copy(ConstView(block(packed, t.peer, t.destination.extents())),
                   c.destination[t.destination]);
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
};

}  // namespace cleave::detail
