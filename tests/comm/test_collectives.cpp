#include <doctest/doctest.h>

#include "collective_cases.hpp"
#include "collective_properties.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("a broadcast leaves the root's elements on every other rank, and the root alone") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) { broadcast_cases(world); });
}

TEST_CASE("a scatter gives every rank its piece, also an empty one") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { scatter_cases(world); });
}

TEST_CASE("a gather puts every rank's piece into its place on the root only") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { gather_cases(world); });
}

TEST_CASE("an all-gather puts every rank's piece into its place on all ranks") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { all_gather_cases(world); });
}

TEST_CASE("a reduce-scatter gives every rank the reduction of its piece, for every type and op") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { reduce_scatter_cases(world); });
}

TEST_CASE("an all-reduce gives every rank the reduction, for every type, op and stride") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) { all_reduce_cases(world); });
}

TEST_CASE("an exchange moves every box to where its receiver wants it") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { exchange_cases(world); });
}

TEST_CASE("calls are short on some ranks and long on others, with empty ones between") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) { length_cases(world); });
}

TEST_CASE("collectives that run together give the results of single ones") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) { together_cases(world); });
}

TEST_CASE("reductions add in the order of the ranks, and 16-bit types in float") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) { rank_order_cases(world); });
}

TEST_CASE("subgroups are numbered as listed, nest, and do not disturb each other") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) { subgroup_cases(world); });
}

TEST_CASE("hundreds of collectives run one after the other, with checks on or off") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) {
    for (const CheckLevel level : {CheckLevel::off, CheckLevel::local, CheckLevel::collective}) {
      world.communicator().state().check = level;
      endurance_cases(world, 200);
    }
  });
}
