// Collectives of a group on several nodes, each with the same number of ranks: through shared
// memory within a node, by messages between nodes.
//
// Column p consists of rank p of every node. All columns communicate at the same time, each with
// its part of the data, so that every element crosses the network once per node and all ranks of a
// node share the work:
//
// - all_gather: columns gather, in place; ranks then read what the other ranks of their node
//   gathered.
// - reduce_scatter: a node reduces the pieces of column p on its rank p; columns reduce-scatter.
// - all_reduce: a node reduces share p on its rank p; columns all-reduce; a node gathers.
// - exchange: ranks of a node read each other's memory; transfers to other nodes go directly or, if
//   all are small and of one size, via the rank of the node in the receiver's column.
//
// Short calls use other algorithms (two_level_short.hpp, two_level_leaders.hpp).
//
// (N. T. Karonis et al., "Exploiting hierarchy in parallel computer networks to optimize collective
// operation performance", IPDPS 2000; J. L. Träff and A. Rougier, "MPI collectives and datatypes
// for hierarchical all-to-all communication", EuroMPI 2014.)
//
// A reduction combines the ranks of a node in order, and then the nodes in order: the same bits in
// every run on the same nodes, but not the same bits as on one node.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/mpi/node_grid.hpp>
#include <cleave/comm/mpi/two_level_leaders.hpp>
#include <cleave/comm/mpi/two_level_parts.hpp>
#include <cleave/comm/mpi/two_level_short.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// Bytes of scratch that a rank uses for its part of a reduction at a time. Small in tests.
inline std::size_t two_level_scratch = std::size_t(4) << 20;

/// The total bytes from which several short calls use two levels; below, one message between each
/// pair of ranks is faster. The same on all ranks; small in tests.
inline index_t two_level_packed_bytes = index_t(1) << 20;

/// @tparam Group  a communicator with `relay`, which runs calls that implement another one,
///                `reads_directly`, which tells whether its ranks read memory in place,
///                `sends_in_parts`, which tells whether messages wait for no reply, and `is_far`
template <class Group>
class MpiTwoLevel {
 public:
  /// @param node, column  the groups of this rank's node and of its column
  MpiTwoLevel(NodeGrid grid, std::shared_ptr<Group> node, std::shared_ptr<Group> column)
      : grid_(std::move(grid)),
        node_(std::move(node)),
        column_(std::move(column)),
        leaders_(grid_, *node_, *column_),
        short_(grid_, *node_, *column_) {}
  MpiTwoLevel(const MpiTwoLevel&) = delete;  // has references to its members
  MpiTwoLevel& operator=(const MpiTwoLevel&) = delete;

  /// @pre  a reduction may combine ranks in any order (rounding may differ)
  void run(const Collective& c, MpiOpContext way) {
    if (leaders_.takes(c)) return leaders_.run(c);
    if (short_.takes(c)) return short_.run(c);
    switch (c.kind) {
      case CollectiveKind::all_gather: return all_gather({&c, 1});
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      case CollectiveKind::all_reduce: return all_reduce(c);
      default: {
        MpiMessages messages(way);
        exchange(c, messages);
      }
    }
  }

  /// Runs the calls of each kind with one round of messages and two barriers of the node.
  /// @param gathers, scatters  short all_gathers and reduce_scatters
  void run_together(std::span<const Collective> gathers, std::span<const Collective> scatters) {
    if (!gathers.empty()) all_gather(gathers);
    if (!scatters.empty()) reduce_scatter_together(scatters);
  }

 private:
  void all_gather(std::span<const Collective> gathers) {
    std::vector<std::vector<Box>> columns, rows;
    std::vector<Collective> across, calls;
    for (const Collective& c : gathers) {
      Collective& call = across.emplace_back(part_of_call(c, CollectiveKind::all_gather));
      std::vector<Box>& pieces = columns.emplace_back();
      for (int n = 0; n < grid_.nodes; ++n) {
        pieces.push_back(piece(c, n, grid_.place));
        call.global_count += pieces.back().volume();
      }
      call.source = c.source;
      call.destination = c.destination;
      call.pieces = pieces;
    }
    column_->relay(across);
    for (const Collective& c : gathers)
      for (int n = 0; n < grid_.nodes; ++n) {
        Collective& call = calls.emplace_back(part_of_call(c, CollectiveKind::all_gather));
        call.source = c.destination[piece(c, n, grid_.place)];
        call.destination = c.destination;
        call.pieces = rows.emplace_back(row(c, n));
      }
    node_->relay(calls);
  }

  void reduce_scatter_together(std::span<const Collective> scatters) {
    std::vector<std::shared_ptr<void>> copies, sums, dense;
    std::vector<std::vector<Box>> columns, rows;
    std::vector<Collective> across, calls;
    for (const Collective& c : scatters) {
      const DType type = c.source.dtype;
      const std::size_t size = size_of(type);
      const auto& copy = copies.emplace_back(readable_copy(c.source));
      const auto& sum = sums.emplace_back(allocate_bytes(Host{}, column_bytes(c, 1, size)));
      std::vector<Box>& ranges = columns.emplace_back();
      index_t at = 0;
      for (int n = 0; n < grid_.nodes; ++n) {
        const Box& own = piece(c, n, grid_.place);
        Collective& call = calls.emplace_back(part_of_call(c, CollectiveKind::reduce_scatter));
        call.source =
            copy != nullptr ? ConstView::dense(copy.get(), type, c.source.extents) : c.source;
        call.destination = View::dense(element(sum, at, size), type, own.extents());
        call.pieces = rows.emplace_back(row(c, n));
        ranges.push_back(linear_interval(at, at + own.volume()));
        at += own.volume();
      }
      Collective& call = across.emplace_back(part_of_call(c, CollectiveKind::reduce_scatter));
      call.source = flat_view(static_cast<const void*>(sum.get()), type, at);
      call.pieces = ranges;
      call.global_count = at;
      const bool in_place = c.destination.contiguous();
      dense.push_back(in_place ? nullptr
                               : allocate_bytes(Host{}, std::size_t(c.destination.bytes())));
      call.destination =
          flat_view(in_place ? c.destination.data : dense.back().get(), type, c.destination.size());
    }
    node_->relay(calls);
    column_->relay(across);
    for (std::size_t i = 0; i < scatters.size(); ++i)
      if (const View& to = scatters[i].destination; dense[i] != nullptr)
        unpack_view(dense[i].get(), to);
  }

  void reduce_scatter(const Collective& c) {
    const std::size_t size = size_of(c.source.dtype);
    const std::shared_ptr<void> copy = readable_copy(c.source);
    const ConstView source =
        copy != nullptr ? ConstView::dense(copy.get(), c.source.dtype, c.source.extents) : c.source;
    const int rounds = rounds_of(c, size);
    const std::shared_ptr<void> scratch = allocate_bytes(Host{}, column_bytes(c, rounds, size));
    for (int round = 0; round < rounds; ++round) {
      Collective across = part_of_call(c, CollectiveKind::reduce_scatter);
      std::vector<std::vector<Box>> rows;
      std::vector<Box> ranges;
      std::vector<Collective> calls;
      index_t at = 0;
      for (int n = 0; n < grid_.nodes; ++n) {
        std::vector<Box>& slices = rows.emplace_back(row(c, n));
        for (Box& slice : slices) slice = slice_of(slice, round, rounds);
        const Box& own = slices[std::size_t(grid_.place)];
        Collective& call = calls.emplace_back(part_of_call(c, CollectiveKind::reduce_scatter));
        call.source = source;
        call.destination = View::dense(element(scratch, at, size), source.dtype, own.extents());
        ranges.push_back(linear_interval(at, at + own.volume()));
        at += own.volume();
      }
      for (int n = 0; n < grid_.nodes; ++n) calls[std::size_t(n)].pieces = rows[std::size_t(n)];
      node_->relay(calls);
      across.source = flat_view(element(scratch, 0, size), source.dtype, at);
      across.pieces = ranges;
      const Box& mine = piece(c, grid_.node, grid_.place);
      receive_reduced(across, c.destination, mine, slice_of(mine, round, rounds));
    }
  }

  void all_reduce(const Collective& c) {
    const index_t elements = c.source.size();
    const std::size_t size = size_of(c.source.dtype);
    if (elements == 0) return;
    std::shared_ptr<void> dense;  // if the destination is not contiguous
    void* out = c.destination.data;
    if (!c.destination.contiguous()) {
      dense = allocate_bytes(Host{}, std::size_t(c.destination.bytes()));
      out = dense.get();
    }
    const void* in = c.source.data;
    if (!c.source.contiguous()) {
      pack_view(c.source, out);
      in = out;
    }
    const index_t most = index_t(two_level_scratch / size) * grid_.places;
    for (index_t at = 0; at < elements; at += most) {
      const index_t count = std::min(most, elements - at);
      const auto offset = std::size_t(at) * size;
      reduce_shares(c, flat_view(static_cast<const std::byte*>(in) + offset, c.source.dtype, count),
                    flat_view(static_cast<std::byte*>(out) + offset, c.source.dtype, count));
    }
    if (dense != nullptr) unpack_view(out, c.destination);
  }

  /// Transfers within the node are read while the first messages are in flight, and between far
  /// nodes, whose messages take longer, the rank's own part is copied while it waits for them.
  void exchange(const Collective& c, MpiMessages& messages) {
    const int kept = column_->is_far() ? messages.rank() : -1;
    for (const Transfer& t : c.receives)
      if (!is_here(t.peer)) messages.receive(c.destination[t.destination], t.peer);
    for_each_from_next_rank(c.sends, messages.rank(), [&](const Transfer& t) {
      if (!is_here(t.peer)) messages.send(c.source[t.source], t.peer);
      if (t.peer == kept)
        messages.keep(c.source[t.source], c.destination[t.destination], c.destination.bytes());
    });
    Collective here = part_of_call(c, CollectiveKind::exchange);
    const std::vector<Transfer> sends = local(c.sends, kept), receives = local(c.receives, kept);
    here.source = c.source;
    here.destination = c.destination;
    here.sends = sends;
    here.receives = receives;
    node_->relay({&here, 1});
    messages.finish();
  }

  static void* element(void* data, index_t at, std::size_t size) {
    return static_cast<std::byte*>(data) + std::size_t(at) * size;
  }
  static void* element(const std::shared_ptr<void>& data, index_t at, std::size_t size) {
    return element(data.get(), at, size);
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

  /// A copy of a source that every call of the node would copy; null if its ranks read the source.
  std::shared_ptr<void> readable_copy(const ConstView& source) const {
    if (source.size() == 0 || node_->reads_directly(source.data)) return nullptr;
    std::shared_ptr<void> copy = allocate_bytes(Host{}, std::size_t(source.bytes()));
    pack_view(source, copy.get());
    return copy;
  }

  /// Part `round` of `rounds` of a box, split along its longest dimension.
  static Box slice_of(Box box, int round, int rounds) {
    if (rounds == 1 || box.dims() == 0) return box;
    const Shape extents = box.extents();
    int longest = 0;
    for (int d = 1; d < extents.dims; ++d)
      if (extents[d] > extents[longest]) longest = d;
    const index_t begin = box.begin[longest], extent = extents[longest];
    box.begin[longest] = begin + extent * round / rounds;
    box.end[longest] = begin + extent * (round + 1) / rounds;
    return box;
  }

  /// The rounds that a reduce-scatter needs, for the largest column: the same on all ranks.
  int rounds_of(const Collective& c, std::size_t size) const {
    std::size_t most = 0;
    for (int p = 0; p < grid_.places; ++p) {
      std::size_t bytes = 0;
      for (int n = 0; n < grid_.nodes; ++n) bytes += std::size_t(piece(c, n, p).volume()) * size;
      most = std::max(most, bytes);
    }
    return int(std::max<std::size_t>(1, (most + two_level_scratch - 1) / two_level_scratch));
  }

  /// Bytes of the slices of this rank's column in the largest round.
  std::size_t column_bytes(const Collective& c, int rounds, std::size_t size) const {
    std::size_t most = 0;
    for (int round = 0; round < rounds; ++round) {
      std::size_t bytes = 0;
      for (int n = 0; n < grid_.nodes; ++n)
        bytes += std::size_t(slice_of(piece(c, n, grid_.place), round, rounds).volume()) * size;
      most = std::max(most, bytes);
    }
    return most;
  }

  /// Reduce-scatters over the column, to a slice of this rank's piece.
  void receive_reduced(Collective& across, const View& destination, const Box& piece,
                       const Box& slice) {
    const index_t count = slice.volume();
    const View to = count > 0 ? destination[slice.relative_to(piece.begin)] : destination;
    std::shared_ptr<void> dense;
    void* data = to.data;
    if (count > 0 && !to.contiguous())
      data = (dense = allocate_bytes(Host{}, std::size_t(to.bytes()))).get();
    across.destination = flat_view(data, across.source.dtype, count);
    column_->relay({&across, 1});
    if (dense != nullptr) unpack_view(data, to);
  }

  void reduce_shares(const Collective& c, const ConstView& in, const View& out) {
    const std::size_t size = size_of(in.dtype);
    const index_t elements = in.size(), line = 64 / index_t(size);
    const index_t share = ((elements + grid_.places - 1) / grid_.places + line - 1) / line * line;
    std::vector<Box> shares;
    for (int p = 0; p < grid_.places; ++p)
      shares.push_back(
          linear_interval(std::min(share * p, elements), std::min(share * (p + 1), elements)));
    const index_t mine = shares[std::size_t(grid_.place)].volume();
    const std::shared_ptr<void> scratch = allocate_bytes(Host{}, std::size_t(mine) * size);
    Collective call = part_of_call(c, CollectiveKind::reduce_scatter);
    call.source = in;
    call.destination = flat_view(scratch.get(), in.dtype, mine);
    call.pieces = shares;
    node_->relay({&call, 1});
    call.kind = CollectiveKind::all_reduce;
    call.source = call.destination;
    column_->relay({&call, 1});
    call.kind = CollectiveKind::all_gather;
    call.destination = out;
    node_->relay({&call, 1});
  }

  bool is_here(int peer) const { return grid_.node_of(peer) == grid_.node; }

  /// The transfers within the node, without those of rank `except`, with their peers as places.
  std::vector<Transfer> local(std::span<const Transfer> transfers, int except) const {
    std::vector<Transfer> result;
    for (const Transfer& t : transfers)
      if (is_here(t.peer) && t.peer != except)
        result.push_back({grid_.place_of(t.peer), t.source, t.destination});
    return result;
  }

  NodeGrid grid_;
  std::shared_ptr<Group> node_;
  std::shared_ptr<Group> column_;
  MpiTwoLevelLeaders<Group> leaders_;
  MpiTwoLevelShort<Group> short_;
};

}  // namespace cleave::detail
