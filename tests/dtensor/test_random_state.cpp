// The random state: saved, restored, compared between ranks.
#include <string>

#include <doctest/doctest.h>

#include <cleave/dtensor/random.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/random/dropout.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

TEST_CASE("a saved state draws the same again, on other ranks too") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 5);
    static_cast<void>(rand<double>({3}, mesh, Replicate{}));
    const RandomState saved = random_state(world);
    CHECK(saved == RandomState{5, 1});
    const auto a = randn<double>({9}, mesh, Shard<0>{}).full_tensor();
    set_random_state(mesh, saved);
    const auto b = randn<double>({9}, mesh, Replicate{}).full_tensor();
    for (index_t i = 0; i < 9; ++i) CHECK(a(i) == b(i));
  });
}

TEST_CASE("ranks whose state differs are named when checks are on") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, world.rank() == 1 ? 6 : 5);
    world.communicator().state().check = CheckLevel::collective;
    const std::string error = error_of([&] { rand<float>({4}, mesh, Shard<0>{}); });
    CHECK(contains(error,
                   "rand: the random states of the ranks differ: rank 1 (seed 6, offset 0) "
                   "from rank 0 (seed 5, offset 0)"));
    manual_seed(world, 5);
    if (world.rank() == world.size() - 1) set_random_state(world, {5, 7});
    const auto x = ones<float>({4}, mesh, Shard<0>{});
    CHECK(contains(error_of([&] { dropout(x, 0.5); }),
                   "dropout: the random states of the ranks differ: rank " +
                       std::to_string(world.size() - 1) + " (seed 5, offset 7)"));
  });
}

TEST_CASE("ranks that have drawn alone continue from the first rank's state") {
  on_ranks({3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    manual_seed(world, 5);
    const auto pair = init_device_mesh<dp>(world, {2}, {0, 2});
    if (pair.is_member()) static_cast<void>(rand<float>({4}, pair, Shard<0>{}));
    world.communicator().state().check = CheckLevel::collective;
    CHECK(contains(error_of([&] { rand<float>({4}, mesh, Shard<0>{}); }),
                   "rank 1 (seed 5, offset 0)"));
    synchronize_random_state(mesh);
    CHECK(random_state(mesh).seed == 5);
    const auto x = rand<float>({4}, mesh, Shard<0>{}).full_tensor();
    const auto y = rand<float>({4}, mesh, Replicate{}).full_tensor();
    CHECK(x(0) != y(0));
  });
}
