// Several redistributions as one: values of one after the other, fewer synchronisations.
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "ranks.hpp"
#include "table.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::is_table;
using cleave::testing::table;

TEST_CASE("tensors of any type and shape are redistributed together") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto a = from_local(table<float>(9, 5), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto b = from_local(table<double>(4, 8), mesh, Replicate{}).redistribute(Shard<1>{});
    const auto c = from_local(table<std::int64_t>(300, 70), mesh, Partial<Sum>{});
    const auto d = from_local(table<double>(3, 3), mesh, Partial<Max>{});
    const auto [x, y, z, w, same] =
        redistribute_all(to(a, Shard<1>{}), to(b, Replicate{}), to(c, Replicate{}),
                         to(d, Shard<0>{}), to(b, Shard<1>{}));
    CHECK(is_table(x.full_tensor(), 9, 5));
    CHECK(is_table(y.local(), 4, 8));
    CHECK(is_table(z.local(), 300, 70, std::int64_t(world.size())));
    CHECK(is_table(w.full_tensor(), 3, 3));
    CHECK(same.local().data() == b.local().data());
  });
}

TEST_CASE("steps over different axes and of different number are carried out all the same") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    const auto a = from_local(table<float>(9, 5), mesh, Partial<Sum>{}, Partial<Max>{});
    const auto b = from_local(table<float>(8, 6), mesh, Replicate{}, Replicate{})
                       .redistribute(Shard<0>{}, Shard<1>{});
    const auto [x, y, z] =
        redistribute_all(to(a, Replicate{}, Replicate{}), to(b, Shard<1>{}, Shard<0>{}),
                         to(b, Replicate{}, Shard<1>{}));
    CHECK(is_table(x.local(), 9, 5, 2.0f));
    CHECK(is_table(y.full_tensor(), 8, 6));
    CHECK(is_table(z.full_tensor(), 8, 6));
  });
}

TEST_CASE("tensors on different meshes are refused") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto other = init_device_mesh<dp, tp>(world, {4, 1}, TestDevice{});
    const auto a = zeros<float>({4}, mesh, Shard<0>{}, Replicate{});
    const auto b = zeros<float>({4}, other, Shard<0>{}, Replicate{});
    CHECK_THROWS_WITH_AS(
        (void)redistribute_all(to(a, Replicate{}, Replicate{}), to(b, Replicate{}, Replicate{})),
        doctest::Contains("the tensors are on different meshes [mesh dp=2 x tp=2 and dp=4 x tp=1"),
        Error);
  });
}
