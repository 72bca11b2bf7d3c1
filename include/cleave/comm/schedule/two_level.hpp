// Schedules for a group on several nodes with the same number of ranks each: ranks of a node read
// each other's memory, and columns (rank p of every node) communicate over the network.
//
// All columns communicate at the same time, each with its pieces of the data, so that every element
// crosses the network once per node and all ranks of a node share the work. For short arrays the
// messages cost more than the bytes: rank 0 of each node, its leader, then communicates for all
// ranks of the node.
//
// (N. T. Karonis et al., "Exploiting hierarchy in parallel computer networks to optimize collective
// operation performance", IPDPS 2000; J. L. Träff and A. Rougier, "MPI collectives and datatypes
// for hierarchical all-to-all communication", EuroMPI 2014.)
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/flat.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/select.hpp>
#include <cleave/comm/schedule/topology.hpp>

namespace cleave::inline v0::detail {

class TwoLevelSchedule {
 public:
  /// @pre topology.grid.nodes > 0
  TwoLevelSchedule(Schedule& schedule, const Topology& topology)
      : schedule_(schedule),
        topology_(topology),
        column_(schedule, RankLevel::column, grid_.node, grid_.nodes, limits_) {}

  /// @param algorithm  columns, leaders or forwarded
  void append(const Collective& c, Algorithm algorithm) {
    if (algorithm == Algorithm::forwarded) return forward(c);
    const bool leaders = algorithm == Algorithm::leaders;
    switch (c.kind) {
      case CollectiveKind::all_gather: return leaders ? gather_by_leaders(c) : all_gather(c);
      case CollectiveKind::reduce_scatter:
        return leaders ? scatter_by_leaders(c) : reduce_scatter(c);
      case CollectiveKind::all_reduce: return leaders ? reduce_by_leaders(c) : all_reduce(c);
      default: return exchange(c);
    }
  }

 private:
  // Columns.

  /// Columns gather, in place; ranks then read what the other ranks of their node have gathered.
  void all_gather(const Collective& c) {
    std::vector<Box> pieces;
    std::vector<Collective> calls;
    for (int n = 0; n < grid_.nodes; ++n) {
      pieces.push_back(piece(c, n, grid_.place));
      calls.push_back(Collective::all_gather(c.destination[pieces.back()], c.destination,
                                             schedule_.keep(row(c, n)))
                          .within(c));
    }
    column_.append(
        Collective::all_gather(c.source, c.destination, schedule_.keep(std::move(pieces)))
            .within(c));
    schedule_.direct(RankLevel::node, std::move(calls));
  }

  /// A node reduces the pieces of column p on its rank p; columns reduce-scatter the results.
  void reduce_scatter(const Collective& c) {
    const DType type = c.source.dtype;
    const ConstView source = readable(c.source);
    index_t most = 0;  // elements of the largest column: the same on all ranks
    for (int p = 0; p < grid_.places; ++p) {
      index_t elements = 0;
      for (int n = 0; n < grid_.nodes; ++n) elements += piece(c, n, p).volume();
      most = std::max(most, elements);
    }
    if (most == 0) return;
    const index_t bytes = most * index_t(size_of(type));
    const int rounds = int(
        std::clamp<index_t>((bytes + limits_.scratch_bytes - 1) / limits_.scratch_bytes, 1, most));
    index_t longest = 0;
    for (int round = 0; round < rounds; ++round) {
      index_t elements = 0;
      for (int n = 0; n < grid_.nodes; ++n)
        elements += slice_of(piece(c, n, grid_.place), round, rounds).volume();
      longest = std::max(longest, elements);
    }
    const View sums = schedule_.scratch(type, longest);
    const Box& own = piece(c, grid_.node, grid_.place);
    for (int round = 0; round < rounds; ++round) {
      std::vector<Collective> calls;
      std::vector<Box> ranges;
      index_t at = 0;
      for (int n = 0; n < grid_.nodes; ++n) {
        std::vector<Box> slices = row(c, n);
        for (Box& slice : slices) slice = slice_of(slice, round, rounds);
        const Box mine = slices[std::size_t(grid_.place)];
        calls.push_back(Collective::reduce_scatter(c.op, source, dense_in(sums, at, mine.extents()),
                                                   schedule_.keep(std::move(slices)))
                            .within(c));
        ranges.push_back(interval(at, at + mine.volume()));
        at += mine.volume();
      }
      schedule_.direct(RankLevel::node, std::move(calls));
      const Box mine = slice_of(own, round, rounds);
      const View to =
          mine.empty() ? c.destination[mine] : c.destination[mine.relative_to(own.begin)];
      const View flat = to.contiguous()
                            ? View::dense(to.data, type, Shape::filled(1, mine.volume()))
                            : schedule_.scratch(type, mine.volume());
      column_.append(Collective::reduce_scatter(c.op, piece_in(sums, interval(0, at)), flat,
                                                schedule_.keep(std::move(ranges)))
                         .within(c));
      if (!to.contiguous()) schedule_.copy(dense_in(flat, 0, to.extents), to);
    }
  }

  /// A node reduces piece p on its rank p; columns all-reduce their pieces; ranks read all pieces.
  void all_reduce(const Collective& c) {
    const DType type = c.source.dtype;
    const index_t elements = c.source.size(), size = index_t(size_of(type));
    const View out = c.destination.contiguous()
                         ? View::dense(c.destination.data, type, Shape::filled(1, elements))
                         : schedule_.scratch(type, elements);
    ConstView in = ConstView::dense(c.source.data, type, Shape::filled(1, elements));
    if (!c.source.contiguous()) {
      schedule_.copy(c.source, dense_in(out, 0, c.source.extents));
      in = out;
    }
    const index_t most = std::max<index_t>(1, limits_.scratch_bytes / size) * grid_.places;
    const index_t line = std::max<index_t>(1, 64 / size);
    const View sums = schedule_.scratch(
        type, flat_piece(std::min(most, elements), 0, grid_.places, line).volume());
    for (index_t at = 0; at < elements; at += most) {
      const Box slice = interval(at, std::min(at + most, elements));
      const std::span<const Box> pieces =
          schedule_.keep(flat_pieces(slice.volume(), grid_.places, line));
      const View sum = piece_in(sums, interval(0, pieces[std::size_t(grid_.place)].volume()));
      schedule_.direct(RankLevel::node,
                       {Collective::reduce_scatter(c.op, in[slice], sum, pieces).within(c)});
      column_.append(Collective::all_reduce(c.op, sum, sum).within(c));
      schedule_.direct(RankLevel::node,
                       {Collective::all_gather(sum, piece_in(out, slice), pieces).within(c)});
    }
    if (!c.destination.contiguous())
      schedule_.copy(dense_in(out, 0, c.destination.extents), c.destination);
  }

  /// Transfers within the node are read; others are sent once.
  void exchange(const Collective& c) {
    const auto split = [&](std::span<const Transfer> all, bool here) {
      std::vector<Transfer> some;
      for (const Transfer& t : all)
        if ((grid_.node_of(t.peer) == grid_.node) == here) some.push_back(t);
      if (here)
        for (Transfer& t : some) t.peer = grid_.place_of(t.peer);
      return some;
    };
    const auto transfers = [&](CollectiveKind kind, bool here) {
      return Collective::exchange(kind, c.source, c.destination,
                                  schedule_.keep(split(c.sends, here)),
                                  schedule_.keep(split(c.receives, here)))
          .within(c);
    };
    Collective apart = transfers(c.kind, false);
    apart.global_count = c.global_count;
    FlatSchedule(schedule_, RankLevel::group, topology_.rank, topology_.size, limits_)
        .append(apart);
    schedule_.direct(RankLevel::node, {transfers(CollectiveKind::exchange, true)});
  }

  /// A rank passes its pieces for column p to rank p of its node, which then has those of its
  /// node for its column, as [node][place][elements] of the receiving node and of the senders; the
  /// columns exchange these.
  void forward(const Collective& c) {
    const index_t elements = c.sends[0].source.volume();
    const DType type = c.source.dtype;
    const Shape extents(std::array<index_t, 3>{grid_.nodes, grid_.places, elements});
    const auto block = [&](const View& array, int peer, const Shape& shape) {
      const index_t place = grid_.node_of(peer) * index_t(grid_.places) + grid_.place_of(peer);
      return dense_in(array, place * elements, shape);
    };
    const auto box = [&](index_t node, index_t nodes, index_t place, index_t places) {
      return Box{Shape(std::array<index_t, 3>{node, place, 0}),
                 Shape(std::array<index_t, 3>{node + nodes, place + places, elements})};
    };
    const View packed = schedule_.scratch(type, extents.product());
    const View passed = schedule_.scratch(type, extents.product());
    for (const Transfer& t : c.sends)
      schedule_.copy(c.source[t.source], block(packed, t.peer, t.source.extents()));
    std::vector<Transfer> sends, receives;
    for (int p = 0; p < grid_.places; ++p) {
      sends.push_back({p, box(0, grid_.nodes, p, 1), box(0, grid_.nodes, grid_.place, 1)});
      receives.push_back({p, box(0, grid_.nodes, grid_.place, 1), box(0, grid_.nodes, p, 1)});
    }
    const View from = dense_in(packed, 0, extents), to = dense_in(passed, 0, extents);
    schedule_.direct(RankLevel::node, {Collective::exchange(CollectiveKind::exchange, from, to,
                                                            schedule_.keep(std::move(sends)),
                                                            schedule_.keep(std::move(receives)))
                                           .within(c)});
    sends = {}, receives = {};
    for (int n = 0; n < grid_.nodes; ++n) {
      sends.push_back({n, box(n, 1, 0, grid_.places), box(grid_.node, 1, 0, grid_.places)});
      receives.push_back({n, box(grid_.node, 1, 0, grid_.places), box(n, 1, 0, grid_.places)});
    }
    Collective call =
        Collective::exchange(CollectiveKind::all_to_all, to, from,  // `from` is read
                             schedule_.keep(std::move(sends)), schedule_.keep(std::move(receives)))
            .within(c);
    call.even = true;
    call.global_count = extents.product() * grid_.nodes;
    column_.append(call);
    for (const Transfer& t : c.receives)
      schedule_.copy(block(packed, t.peer, t.destination.extents()), c.destination[t.destination]);
  }

  // Leaders.

  void gather_by_leaders(const Collective& c) {
    const Pieces all = pack_order(c);
    const View own = piece_in(all.here, all.row[std::size_t(grid_.place)]);
    schedule_.copy(c.source, dense_in(own, 0, c.source.extents));
    schedule_.direct(RankLevel::node, {Collective::all_gather(own, all.here, all.row).within(c)});
    if (leads()) column_.append(Collective::all_gather(all.here, all.array, all.nodes).within(c));
    read_from_leader(c, all.array, all.array);
    each_piece(c, [&](index_t at, const Box& box) {
      schedule_.copy(dense_in(all.array, at, box.extents()), c.destination[box]);
    });
  }

  void scatter_by_leaders(const Collective& c) {
    const Pieces all = pack_order(c);
    each_piece(c, [&](index_t at, const Box& box) {
      schedule_.copy(c.source[box], dense_in(all.array, at, box.extents()));
    });
    const View sum = reduce_at_leader(c, all.array);
    if (leads())  // all.here is no longer read
      column_.append(Collective::reduce_scatter(c.op, sum, all.here, all.nodes).within(c));
    read_from_leader(c, all.here, all.here);
    schedule_.copy(
        dense_in(piece_in(all.here, all.row[std::size_t(grid_.place)]), 0, c.destination.extents),
        c.destination);
  }

  void reduce_by_leaders(const Collective& c) {
    if (c.source.size() == 0) return;
    const View all = schedule_.scratch(c.source.dtype, c.source.size());
    schedule_.copy(c.source, dense_in(all, 0, c.source.extents));
    const View sum = reduce_at_leader(c, all);
    if (leads()) column_.append(Collective::all_reduce(c.op, sum, sum).within(c));
    read_from_leader(c, sum, all);
    schedule_.copy(dense_in(all, 0, c.destination.extents), c.destination);
  }

  bool leads() const noexcept { return grid_.place == 0; }

  /// A flat copy of the pieces of all ranks, as [node][place].
  struct Pieces {
    View array{}, here{};          ///< all, and those of this node
    std::span<const Box> nodes{};  ///< the interval of each node
    std::span<const Box> row{};    ///< those of the ranks of this node, in `here`
  };

  Pieces pack_order(const Collective& c) {
    std::vector<Box> nodes, row;
    index_t at = 0;
    for (int n = 0; n < grid_.nodes; ++n) {
      const index_t begin = at;
      for (int p = 0; p < grid_.places; ++p) {
        const index_t count = piece(c, n, p).volume();
        if (n == grid_.node) row.push_back(interval(at - begin, at - begin + count));
        at += count;
      }
      nodes.push_back(interval(begin, at));
    }
    Pieces all;
    all.array = schedule_.scratch(c.dtype(), at);
    all.here = piece_in(all.array, nodes[std::size_t(grid_.node)]);
    all.nodes = schedule_.keep(std::move(nodes));
    all.row = schedule_.keep(std::move(row));
    return all;
  }

  /// Calls f(position in the flat copy, piece) for the pieces that are not empty.
  template <class F>
  void each_piece(const Collective& c, const F& f) const {
    index_t at = 0;
    for (int n = 0; n < grid_.nodes; ++n)
      for (int p = 0; p < grid_.places; ++p) {
        const Box& box = piece(c, n, p);
        if (!box.empty()) f(at, box);
        at += box.volume();
      }
  }

  /// Pieces that give everything to the leader and nothing to other ranks.
  std::span<const Box> pieces_of_leader(index_t count) {
    std::vector<Box> pieces(std::size_t(grid_.places), interval(count, count));
    pieces[0].begin[0] = 0;
    return schedule_.keep(std::move(pieces));
  }

  /// @return on the leader the reduction over the ranks of this node; elsewhere an empty view
  View reduce_at_leader(const Collective& c, const View& all) {
    const View sum = schedule_.scratch(all.dtype, leads() ? all.size() : 0);
    schedule_.direct(
        RankLevel::node,
        {Collective::reduce_scatter(c.op, all, sum, pieces_of_leader(all.size())).within(c)});
    return sum;
  }

  /// @param result  on the leader; not read elsewhere
  void read_from_leader(const Collective& c, const View& result, const View& destination) {
    const View source = leads() ? result : piece_in(result, interval(0, 0));
    schedule_.direct(RankLevel::node, {Collective::all_gather(source, destination,
                                                              pieces_of_leader(destination.size()))
                                           .within(c)});
  }

  const Box& piece(const Collective& c, int node, int place) const {
    return c.pieces[std::size_t(grid_.at(node, place))];
  }
  /// The pieces of the ranks of a node.
  std::vector<Box> row(const Collective& c, int node) const {
    std::vector<Box> pieces;
    for (int p = 0; p < grid_.places; ++p) pieces.push_back(piece(c, node, p));
    return pieces;
  }

  /// A source that several calls of the node read: copied once if peers cannot read it in place.
  ConstView readable(const ConstView& source) {
    if (source.size() == 0 || topology_.arena == nullptr || topology_.arena->contains(source.data))
      return source;
    const View copy = dense_in(schedule_.scratch(source.dtype, source.size()), 0, source.extents);
    schedule_.copy(source, copy);
    return copy;
  }

  Schedule& schedule_;
  const Topology& topology_;
  const NodeGrid& grid_ = topology_.grid;
  const ScheduleLimits& limits_ = topology_.limits;
  FlatSchedule column_;
};

}  // namespace cleave::inline v0::detail
