// Several redistributions at once: the same values as one after the other, with fewer
// synchronisations.
#include <cstdint>
#include <type_traits>
#include <vector>

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
    CHECK(is_table(y.to_local(), 4, 8));
    CHECK(is_table(z.to_local(), 300, 70, std::int64_t(world.size())));
    CHECK(is_table(w.full_tensor(), 3, 3));
    CHECK(same.to_local().data() == b.to_local().data());
  });
}

TEST_CASE("tensors may take different numbers of steps, over different axes") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
    const auto a = from_local(table<float>(9, 5), mesh, Partial<Sum>{}, Partial<Max>{});
    const auto b = from_local(table<float>(8, 6), mesh, Replicate{}, Replicate{})
                       .redistribute(Shard<0>{}, Shard<1>{});
    const auto [x, y, z] =
        redistribute_all(to(a, Replicate{}, Replicate{}), to(b, Shard<1>{}, Shard<0>{}),
                         to(b, Replicate{}, Shard<1>{}));
    CHECK(is_table(x.to_local(), 9, 5, 2.0f));
    CHECK(is_table(y.full_tensor(), 8, 6));
    CHECK(is_table(z.full_tensor(), 8, 6));
  });
}

TEST_CASE("any number of tensors, types and placements: one message per peer; sums are one") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const index_t n = world.size();
    const auto a = from_local(table<float>(9, 5), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto b = from_local(table<double>(8, 8), mesh, Replicate{}).redistribute(Shard<1>{});
    const auto c = from_local(table<std::int64_t>(12, 7), mesh, Partial<Sum>{});
    const auto d = from_local(table<double>(6, 4), mesh, Partial<Sum>{});
    const auto e = from_local(table<double>(1, 3), mesh, Partial<Max>{});
    const auto f = from_local(table<std::int64_t>(5, 5), mesh, Partial<Sum>{});
    const auto [a1, a2, b1, b2, c1, c2, d1, d2, e1, f1] = redistribute_all(
        to(a, Shard<1>{}), to(a, Replicate{}), to(b, Replicate{}), to(b, Shard<0>{}),
        to(c, Replicate{}), to(c, Shard<0>{}), to(d, Shard<1>{}), to(d, Replicate{}),
        to(e, Replicate{}), to(f, Replicate{}));
    CHECK(is_table(a1.full_tensor(), 9, 5));
    CHECK(is_table(a2.to_local(), 9, 5));
    CHECK(is_table(b1.to_local(), 8, 8));
    CHECK(is_table(b2.full_tensor(), 8, 8));
    CHECK(is_table(c1.to_local(), 12, 7, std::int64_t(n)));
    CHECK(is_table(c2.full_tensor(), 12, 7, std::int64_t(n)));
    CHECK(is_table(d1.full_tensor(), 6, 4, double(n)));
    CHECK(is_table(d2.to_local(), 6, 4, double(n)));
    CHECK(is_table(e1.to_local(), 1, 3));
    CHECK(is_table(f1.to_local(), 5, 5, std::int64_t(n)));
  });
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const index_t peers = world.size() - 1;
    const auto a = from_local(table<float>(9, 5), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto b = from_local(table<double>(8, 8), mesh, Replicate{}).redistribute(Shard<1>{});
    const auto c = from_local(table<std::int64_t>(12, 7), mesh, Partial<Sum>{});
    CommTrace trace(world);
    static_cast<void>(redistribute_all(to(a, Shard<1>{}), to(a, Replicate{}), to(b, Replicate{}),
                                       to(b, Shard<0>{}), to(c, Shard<0>{})));
    // on the host two: all that moves, in one packed call, and the sum
    CHECK(trace.count() == (std::is_same_v<TestDevice, Host> ? 2 : 5));
    CHECK(trace.received_messages() == peers);
    trace.clear();
    const std::vector same(7, c);
    static_cast<void>(redistribute_all(same, Replicate{}));
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    CHECK(trace.received_messages() == 2 * peers);
    trace.clear();
    static_cast<void>(redistribute_all(same, Shard<1>{}));
    CHECK(trace.received_messages() == peers);
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
