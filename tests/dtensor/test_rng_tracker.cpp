// RNG trackers: which ranks draw the same numbers, inside and outside regions.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/random.hpp>
#include <cleave/dtensor/rng_tracker.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// The numbers of all ranks of a group.
std::vector<double> gathered(Communicator& group, double mine) {
  const auto size = std::size_t(group.size());
  std::vector<double> all(size);
  std::vector<Box> pieces;
  for (index_t r = 0; r < group.size(); ++r)
    pieces.push_back({Shape::filled(1, r), Shape::filled(1, r + 1)});
  Collective call;
  call.kind = CollectiveKind::all_gather;
  call.source = ConstView::dense(&mine, DType::float64, Shape::filled(1, 1));
  call.destination = View::dense(all.data(), DType::float64, Shape::filled(1, index_t(size)));
  call.pieces = pieces;
  group.run(call);
  return all;
}

double local_number(RandomState& state) { return rand<double>({1}, state)(0); }

}  // namespace

TEST_CASE("a tensor parallel region differs along its axis only; outside, all ranks are alike") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    manual_seed(world, 5);
    TensorParallelRNGTracker tracker(mesh, tp{}, 100);
    std::vector<std::vector<double>> inside;
    for (int round = 0; round < 2; ++round) {
      const auto region = tracker.distribute_region();
      inside.push_back(gathered(world.communicator(), local_number(region.state())));
    }
    CHECK(tracker.state() == RandomState{100, 2});
    CHECK(random_state(world) == RandomState{5, 0});
    for (index_t i = 0; i < world.size(); ++i) {
      const index_t along = i % mesh.extent(tp{});
      for (std::uint64_t round = 0; round < 2; ++round) {
        RandomState expected{100 + 2718 + std::uint64_t(along), round};
        CHECK(inside[std::size_t(round)][std::size_t(i)] == local_number(expected));
      }
    }
    const auto x = rand<double>({3}, mesh, Replicate{}, Replicate{});
    for (const double other : gathered(world.communicator(), x.to_local()(0)))
      CHECK(other == x.to_local()(0));
  });
}

TEST_CASE("inside of a region, arrays are drawn where no replicas would differ") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    TensorParallelRNGTracker tracker(mesh, tp{});
    const auto region = tracker.distribute_region();
    const auto x = rand<double>({12}, mesh, Replicate{}, Shard<0>{});
    const auto over_dp = gathered(mesh.group(dp{}), x.to_local()(0));
    for (const double other : over_dp) CHECK(other == over_dp[0]);
    CHECK(contains(error_of([&] { rand<double>({12}, mesh, Shard<0>{}, Replicate{}); }),
                   "inside this distribute_region the ranks along axis 'tp' may draw different "
                   "numbers, but the array is not sharded over it"));
    world.communicator().state().check = CheckLevel::collective;
    static_cast<void>(rand<double>({12}, mesh, Shard<0>{}, Shard<0>{}));
    if (world.rank() == 1) region.state().offset += 3;
    CHECK(contains(error_of([&] { rand<double>({12}, mesh, Shard<0>{}, Shard<0>{}); }),
                   "differ: rank 1 (seed 1234, offset 5)"));
    region.state().offset = 0;
  });
}

TEST_CASE("an offset-based region draws the numbers of one rank on any mesh") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 5);
    OffsetBasedRNGTracker tracker(mesh, 77);
    RandomState state{77, 0};
    {
      const auto region = tracker.distribute_region();
      const auto x = randn<double>({5, 2}, mesh, Shard<0>{}).full_tensor();
      const auto expected = randn<double>({5, 2}, state);
      for (index_t i = 0; i < 10; ++i) CHECK(x.data()[i] == expected.data()[i]);
    }
    CHECK(tracker.state() == state);
    CHECK(random_state(world) == RandomState{5, 0});
    CHECK(tracker.is_synchronized());
    if (world.rank() == 1) tracker.set_state({77, 4});
    CHECK(!tracker.is_synchronized());
  });
}

TEST_CASE("a tracker of a part of a mesh draws differently on each of its ranks") {
  on_ranks({4, 8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
    const auto line = mesh[tp{}];
    TensorParallelRNGTracker tracker(line, tp{}, 9);
    const auto region = tracker.distribute_region();
    CHECK(region.state() == RandomState{9 + 2718 + std::uint64_t(mesh.coordinate(tp{})), 0});
    const auto x = rand<double>({4}, line, Shard<0>{});
    RandomState expected{9 + 2718 + std::uint64_t(mesh.coordinate(tp{})), 0};
    CHECK(x.to_local()(0) == rand<double>({4}, expected)(2 * mesh.coordinate(tp{})));
    CHECK(contains(error_of([&] { rand<double>({4}, mesh, Replicate{}, Shard<0>{}); }),
                   "along axis 'dp' may draw different numbers"));
  });
}

TEST_SUITE_BEGIN("threads only");

TEST_CASE("regions of two trackers may be nested, of one they may not; they can be switched off") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1});
    manual_seed(world, 5);
    OffsetBasedRNGTracker outer(mesh, 1), inner(mesh, 2);
    {
      const auto region = outer.distribute_region();
      static_cast<void>(local_number(region.state()));
      {
        const auto within = inner.distribute_region();
        CHECK(random_state(world) == RandomState{2, 0});
        CHECK(contains(error_of([&] { outer.distribute_region(); }),
                       "distribute_region: a region of this tracker has not ended yet"));
      }
      CHECK(random_state(world) == RandomState{1, 1});
    }
    outer.distribute_region_enabled = false;
    const auto region = outer.distribute_region();
    static_cast<void>(local_number(region.state()));
    CHECK(random_state(world) == RandomState{5, 1});
    CHECK(outer.state() == RandomState{1, 1});
  });
}

TEST_SUITE_END();
