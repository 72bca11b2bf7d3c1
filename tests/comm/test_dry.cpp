#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>

#include "collective_cases.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("one process stands for any rank of 16,384, and its groups") {
  const int size = 16384;
  for (const int rank : {0, 1, 8191, size - 1}) {
    const World world(dry_communicator(rank, size));
    CHECK(world.rank() == rank);
    CHECK(world.size() == size);
    CHECK(std::string(world.communicator().backend()) == "dry");
    CHECK(world.communicator().state().world_rank == rank);

    std::vector<int> row;  // of a 128 x 128 mesh
    for (int c = 0; c < 128; ++c) row.push_back(rank / 128 * 128 + c);
    const auto tp = world.communicator().subgroup(row, "tp");
    CHECK(tp->rank() == rank % 128);
    CHECK(tp->size() == 128);
    CHECK(tp->label() == "tp");
    const int others[] = {127, rank % 128 == 127 ? 5 : rank % 128};
    CHECK(tp->subgroup(others, "pair")->rank() == (rank % 128 == 127 ? 0 : 1));
  }
}

TEST_CASE("nothing is read or written, even for sizes larger than any memory") {
  const World world(dry_communicator(3, 16384));
  const CommTrace trace(world);
  const index_t huge = index_t(1) << 40;
  std::vector<Box> pieces;
  for (index_t r = 0; r < world.size(); ++r)
    pieces.push_back(
        {Shape::filled(1, r * (huge / 16384)), Shape::filled(1, (r + 1) * (huge / 16384))});
  Collective c = call(CollectiveKind::all_gather);
  c.source = ConstView::dense(nullptr, DType::float32, Shape::filled(1, huge / 16384));
  c.destination = View::dense(nullptr, DType::float32, Shape::filled(1, huge));
  c.pieces = pieces;
  world.communicator().run(c);
  CHECK(trace.received_bytes() == 4 * (huge - huge / 16384));

  Tensor<int, 1> kept({3}, {1, 2, 3}), from({3}, {4, 5, 6});
  c = call(CollectiveKind::broadcast);
  c.destination = kept.view();
  world.communicator().state().check = CheckLevel::collective;
  world.communicator().run(c);
  world.barrier();
  CHECK(kept(0) == 1);
  CHECK(kept(2) == 3);
  CHECK(trace.count() == 2);
}

TEST_CASE("errors that one rank can detect are also errors in a dry run") {
  const auto world = dry_communicator(0, 4);
  Collective c = call(CollectiveKind::broadcast);
  c.root = 4;
  CHECK_THROWS_WITH_AS(world->run(c), "broadcast: the root is rank 4 of 4", Error);
  const int others[] = {1, 2};
  CHECK_THROWS_WITH_AS(
      world->subgroup(others, "tp"),
      "subgroup: rank 0 is not in its own list, in a group of the 4 ranks of 'world' [rank 0]",
      Error);
  CHECK_THROWS_WITH_AS(dry_communicator(4, 4), "dry_communicator: there is no rank 4 of 4", Error);
  CHECK_THROWS_WITH_AS(dry_communicator(-1, 4), "dry_communicator: there is no rank -1 of 4",
                       Error);
}
