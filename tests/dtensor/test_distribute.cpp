// from_local and distribute_tensor without placements, and distribute_tensor of a DTensor.
#include <array>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "table.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

TEST_CASE("without placements, every axis is Replicate") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const int half = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / half, half}, TestDevice{});
    const auto mine =
        table<double>(3, 4, double(world.rank() + 1));  // only the first rank's counts
    const auto x = distribute_tensor(mine, mesh);
    static_assert(std::is_same_v<decltype(x.placements()), Placements<Replicate, Replicate>>);
    CHECK(is_table(x.to_local(), 3, 4, 1.0));

    const auto y = from_local(mine, mesh);
    static_assert(std::is_same_v<decltype(y), decltype(x)>);
    CHECK(y.shape() == std::array<index_t, 2>{3, 4});
    CHECK(is_table(y.to_local(), 3, 4, double(world.rank() + 1)));
    CHECK(is_table(from_local(mine, mesh, {.run_check = true}).to_local(), 3, 4, 1.0));
    const CommTrace trace(world);
    CHECK(from_local(mine, mesh, {3, 4}).to_local().data() == mine.data());
    CHECK(trace.events().empty());
    CHECK(contains(error_of([&] { (void)from_local(mine, mesh, {3, 5}); }), "this rank owns"));
  });
}

TEST_CASE("distribute_tensor returns a DTensor that is distributed so, and sends nothing") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto same = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto x = distribute_tensor(table<double>(5, 2), mesh, Shard<0>{});
    const auto whole = distribute_tensor(table<double>(5, 2), mesh);
    const CommTrace trace(world);
    const auto y = distribute_tensor(x, same, Shard<-2>{});
    static_assert(std::is_same_v<decltype(y), decltype(x)>);
    CHECK(y.to_local().data() == x.to_local().data());
    CHECK(distribute_tensor(x, mesh, Placements<Shard<0>>{}).to_local().data() ==
          x.to_local().data());
    CHECK(distribute_tensor(whole, mesh).to_local().data() == whole.to_local().data());
    CHECK(trace.events().empty());
  });
}

TEST_CASE("distribute_tensor of a DTensor on another mesh is an error that names redistribute") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto other = init_device_mesh<dp>(world, {1}, {1}, TestDevice{});
    const auto x = distribute_tensor(table<double>(5, 2), mesh, Shard<0>{});
    const auto message = error_of([&] { (void)distribute_tensor(x, other, Shard<0>{}); });
    CHECK(contains(message,
                   "distribute_tensor: the tensor is on another mesh already; to move it "
                   "to dp=1, call redistribute(mesh, ..)"));
    CHECK(contains(message, "placements (Shard(0)); mesh dp=" + std::to_string(world.size())));
  });
}
