// Groups on several nodes: shared memory within a node, the MPI library between nodes. The
// processes of this machine stand for those of several nodes, two or three on each.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi/mpi_communicator.hpp>
#include <cleave/comm/trace.hpp>

#include "../changed.hpp"
#include "../collective_cases.hpp"
#include "../collective_properties.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

detail::ScheduleLimits& limits() { return Processes::get().limits; }

// Runs the body with that many processes per node, on at least two nodes.
void on_nodes(int per_node, const RankBody& body) {
  if (Processes::get().size() < 2 * per_node) return skip("needs more processes");
  const Changed nodes(Processes::get().limits.ranks_per_node, per_node);
  on_ranks({2 * per_node, 3 * per_node, 4 * per_node}, body);
}

void all_cases(World& world) {
  all_gather_cases(world);
  reduce_scatter_cases(world);
  all_reduce_cases(world);
  exchange_cases(world);
  length_cases(world);
  together_cases(world);
  subgroup_cases(world);
  for (const Style style : all_styles)
    for (const index_t length : {1, 7, 257, 3840, 3841, 5000})
      equal_parts_case<double>(world.communicator(), length, style);
}

// Short gathers and scatters of several styles in one round, together with an exchange.
void packed_cases(World& world) {
  const int n = world.size(), rank = world.rank();
  const std::vector<Box> pieces = uneven_pieces(n, 0, 3);
  const index_t along = uneven_begin(n), begin = uneven_begin(rank), mine = uneven(rank);
  const auto value = [&](index_t i, index_t j) { return sample<float>(rank, i, j); };
  std::vector<Field<float>> parts, wholes, addends, sums;
  std::vector<Transfer> sends, receives;
  const Field<float> sent(n, 3, Style::margin, value), received(n, 3, Style::transposed);
  for (int r = 0; r < n; ++r) {
    sends.push_back({r, box(r, r + 1, 0, 3), box(rank, rank + 1, 0, 3)});
    receives.push_back({r, box(rank, rank + 1, 0, 3), box(r, r + 1, 0, 3)});
  }
  std::vector<Collective> calls;
  for (const Style style : all_styles) {
    Collective c = call(CollectiveKind::all_gather);
    c.source = parts.emplace_back(mine, 3, style, value).view();
    c.destination = wholes.emplace_back(along, 3, style).view();
    c.pieces = pieces;
    c.global_count = along * 3;
    calls.push_back(c);
    c = call(CollectiveKind::reduce_scatter);
    c.source = addends.emplace_back(along, 3, style, value).view();
    c.destination = sums.emplace_back(mine, 3, style).view();
    c.pieces = pieces;
    c.global_count = along * 3;
    calls.push_back(c);
  }
  calls.push_back(call(CollectiveKind::exchange));
  calls.back().source = sent.view();
  calls.back().destination = received.view();
  calls.back().sends = sends;
  calls.back().receives = receives;
  calls.back().global_count = n * n * 3;
  world.communicator().run_all(calls);
  for (const Field<float>& whole : wholes)
    CHECK(whole.difference([&](index_t i, index_t j) {
      int r = 0;
      while (uneven_begin(r + 1) <= i) ++r;
      return sample<float>(r, i - uneven_begin(r), j);
    }) == "");
  for (const Field<float>& sum : sums)
    CHECK(sum.difference([&](index_t i, index_t j) {
      return reduced<float>(ReduceOp::sum, n,
                            [&](int r) { return sample<float>(r, begin + i, j); });
    }) == "");
  CHECK(received.difference([&](index_t i, index_t j) { return sample<float>(int(i), rank, j); }) ==
        "");
}

detail::NodeGrid grid_of(std::vector<int> nodes, int rank) {
  return detail::NodeGrid::of(nodes, rank);
}

}  // namespace

TEST_CASE("a grid has nodes of equal size, in the order in which the group lists them") {
  const detail::NodeGrid blocks = grid_of({7, 7, 2, 2, 5, 5}, 3);
  CHECK(blocks.nodes == 3);
  CHECK(blocks.places == 2);
  CHECK(blocks.node == 1);
  CHECK(blocks.place == 1);
  CHECK(blocks.row() == std::vector<int>{2, 3});
  CHECK(blocks.column() == std::vector<int>{1, 3, 5});
  const detail::NodeGrid dealt = grid_of({1, 0, 1, 0, 0, 1}, 4);
  CHECK(dealt.nodes == 2);
  CHECK(dealt.places == 3);
  CHECK(dealt.row() == std::vector<int>{1, 3, 4});
  CHECK(dealt.column() == std::vector<int>{5, 4});
}

TEST_CASE("nodes of one rank each, of different sizes, or a single one make no grid") {
  CHECK(grid_of({0, 1, 2}, 1).nodes == 0);
  CHECK(grid_of({0, 0, 1}, 0).nodes == 0);
  CHECK(grid_of({0, 0, 1, 1, 1}, 0).nodes == 0);
  CHECK(grid_of({3, 3, 3}, 0).nodes == 0);
  CHECK(grid_of({}, 0).nodes == 0);
}

TEST_CASE("collectives of ranks on several nodes give the results of one node") {
  const auto all_grids = [] {
    on_nodes(2, [](World& world) { all_cases(world); });
    if (Processes::get().size() >= 6) on_nodes(3, [](World& world) { all_cases(world); });
  };
  all_grids();
  const Changed no_leaders(limits().leader_bytes, index_t(0));
  all_grids();
  const Changed none_is_forwarded(limits().forwarded_piece_bytes, index_t(0));
  all_grids();
}

TEST_CASE("short calls between nodes run together as one message for each pair of ranks") {
  for (const index_t bytes : {index_t(0), index_t(1) << 20}) {
    const Changed packed(limits().packed_bytes, bytes);
    on_nodes(2, [](World& world) { packed_cases(world); });
    if (Processes::get().size() >= 6) on_nodes(3, [](World& world) { packed_cases(world); });
  }
}

TEST_CASE("reductions between nodes go through a little scratch round by round") {
  const Changed scratch(limits().scratch_bytes, index_t(96));
  const Changed no_leaders(limits().leader_bytes, index_t(0));
  on_nodes(2, [](World& world) {
    reduce_scatter_cases(world);
    for (const Style style : all_styles) {
      all_reduce_case<float>(world.communicator(), ReduceOp::sum, 83, 101, style, style, true);
      all_reduce_case<std::complex<double>>(world.communicator(), ReduceOp::sum, 83, 101, style,
                                            Style::dense, false);
    }
  });
}

TEST_CASE("calls follow each other across nodes, with checks on or off") {
  on_nodes(2, [](World& world) {
    for (const CheckLevel level : {CheckLevel::off, CheckLevel::collective}) {
      world.communicator().state().check = level;
      endurance_cases(world, 200);
    }
  });
}

TEST_CASE("sums across two nodes add ranks of a node first, or all in rank order on request") {
  on_nodes(2, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const char* const shared = std::getenv("CLEAVE_SHARED_MB");
    const bool two_levels = shared == nullptr || std::string(shared) != "0";
    const auto addend = [](int r, index_t i) {
      return r % 3 == 0 ? 1.0f + float(i % 5) : r % 3 == 1 ? 1e8f : -1e8f;
    };
    for (const bool reproducible : {false, true})
      for (const index_t count : {index_t(9), index_t(20'001)}) {
        if (!reproducible && !(two_levels && n == 4)) continue;  // the order is the MPI library's
        world.communicator().state().reproducible = reproducible;
        const Tensor<float, 1> addends({count}), sum({count});
        for (index_t i = 0; i < count; ++i) addends(i) = addend(rank, i);
        Collective c = call(CollectiveKind::all_reduce);
        c.source = addends.view();
        c.destination = sum.view();
        index_t wrong = 0;
        for (int run = 0; run < 3; ++run) {
          world.communicator().run(c);
          for (index_t i = 0; i < count; ++i) {
            float by_rank = addend(0, i), by_node = addend(0, i) + addend(1, i);
            for (int r = 1; r < n; ++r) by_rank = by_rank + addend(r, i);
            for (int r = 2; r < n; r += 2) by_node = by_node + (addend(r, i) + addend(r + 1, i));
            wrong += sum(i) != (reproducible ? by_rank : by_node);
          }
        }
        CHECK(wrong == 0);
      }
  });
}

TEST_CASE("16-bit types across nodes are added in float and rounded once") {
  on_nodes(2, [](World& world) {
    const int n = world.size();
    const Tensor<half, 1> addends({100}), sum({100});
    addends.fill_(half(world.rank() == 0 ? 2048.0f : 1.0f));
    Collective c = call(CollectiveKind::all_reduce);
    c.source = addends.view();
    c.destination = sum.view();
    world.communicator().run(c);
    CHECK(float(sum(7)) == float(half(2048.0f + float(n - 1))));
  });
}

TEST_CASE("a call across nodes is traced as one call") {
  on_nodes(2, [](World& world) {
    const Tensor<float, 1> x({5000});
    x.fill_(1);
    Collective c = call(CollectiveKind::all_reduce);
    c.source = x.view();
    c.destination = x.view();
    world.communicator().run(c);
    CommTrace trace(world);
    world.communicator().run(c);
    CHECK(trace.events().size() == 1);
  });
}
