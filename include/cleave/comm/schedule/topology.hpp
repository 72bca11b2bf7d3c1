// What the schedules of a group depend on: how its ranks are distributed over nodes, and the
// constants that decide how collectives over MPI are carried out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <cleave/comm/shared_memory/arena.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0::detail {

/// Equal on all ranks of a world; small in tests. Bytes count the whole array of a collective
/// unless stated otherwise.
struct ScheduleLimits {
  /// Up to this length one rank per node communicates for all ranks of the node: the cost is that
  /// of the messages, not of the bytes.
  index_t leader_bytes = 2 << 10;
  /// The longest piece of an all-to-all that goes by way of the rank of its node that is in the
  /// column of the receiver: in fewer messages, each copied twice more.
  index_t forwarded_piece_bytes = 4 << 10;
  /// The longest call, per rank, that is sent in one message with others that run together.
  index_t packed_bytes = 64 << 10;
  /// The longest all-reduce in rank order, times the number of ranks, that every rank reduces
  /// whole.
  index_t gathered_bytes = 32 << 10;
  /// Scratch of a rank for a reduction; longer ones take several rounds.
  index_t scratch_bytes = 8 << 20;
  /// The most elements in one call of the MPI library, whose counts are ints.
  index_t library_count = std::numeric_limits<int>::max();
  /// The longest message; longer ones are split.
  std::size_t message_bytes = std::size_t(1) << 30;
  /// For tests: nodes count as several, each of at most this many ranks. 0: as one.
  int ranks_per_node = 0;
};

/// Several nodes with several ranks each: a row is a node, a column has one rank of each node.
/// Nodes, and the ranks of a node, are numbered in the order in which the group lists them.
struct NodeGrid {
  int nodes = 0;             ///< 0: the group does not form a grid
  int places = 0;            ///< ranks of each node
  int node = 0;              ///< of this rank
  int place = 0;             ///< of this rank, on its node
  std::vector<int> ranks{};  ///< in the group: [node][place]
  std::vector<int> index{};  ///< of every rank, in `ranks`

  int at(int of_node, int of_place) const {
    return ranks[std::size_t(of_node) * std::size_t(places) + std::size_t(of_place)];
  }
  int node_of(int rank) const { return index[std::size_t(rank)] / places; }
  int place_of(int rank) const { return index[std::size_t(rank)] % places; }
  /// The ranks of this rank's node, and those of its column.
  std::vector<int> row() const {
    const auto begin = ranks.begin() + std::ptrdiff_t(node) * places;
    return {begin, begin + places};
  }
  std::vector<int> column() const {
    std::vector<int> result;
    for (int n = 0; n < nodes; ++n) result.push_back(at(n, place));
    return result;
  }

  /// @param node_of  a number per rank of the group, the same for ranks of one node
  /// @return a grid of 0 nodes unless there are several nodes, each with the same number of ranks,
  /// and that is at least 2
  static NodeGrid of(std::span<const int> node_of, int rank) {
    std::vector<int> numbers;
    std::vector<std::vector<int>> rows;
    for (std::size_t r = 0; r < node_of.size(); ++r) {
      auto at = std::find(numbers.begin(), numbers.end(), node_of[r]);
      if (at == numbers.end()) {
        at = numbers.insert(at, node_of[r]);
        rows.emplace_back();
      }
      rows[std::size_t(at - numbers.begin())].push_back(int(r));
    }
    NodeGrid grid;
    if (rows.size() < 2 || rows[0].size() < 2) return grid;
    for (const auto& row : rows)
      if (row.size() != rows[0].size()) return grid;
    grid.nodes = int(rows.size());
    grid.places = int(rows[0].size());
    grid.index.resize(node_of.size());
    for (int n = 0; n < grid.nodes; ++n)
      for (int p = 0; p < grid.places; ++p) {
        const int member = rows[std::size_t(n)][std::size_t(p)];
        grid.ranks.push_back(member);
        grid.index[std::size_t(member)] = n * grid.places + p;
        if (member == rank) grid.node = n, grid.place = p;
      }
    return grid;
  }
};

/// Equal on all ranks of the group, except for the rank's own place and arena.
struct Topology {
  int rank = 0;
  int size = 1;
  bool shares_memory = false;  ///< all ranks are on one node and read each other's memory
  bool reproducible = false;   ///< sums are added in rank order
  NodeGrid grid{};
  ScheduleLimits limits{};
  const SharedArena* arena = nullptr;  ///< the memory of this rank that its node reads, if any

  /// @param node_of  a number per rank of the group, the same for ranks of one node; empty if ranks
  ///                 share no memory
  static Topology of(std::span<const int> node_of, int rank, int size) {
    Topology topology;
    topology.rank = rank;
    topology.size = size;
    topology.grid = NodeGrid::of(node_of, rank);
    topology.shares_memory =
        !node_of.empty() && std::ranges::count(node_of, node_of[0]) == std::ptrdiff_t(size);
    return topology;
  }
};

}  // namespace cleave::inline v0::detail
