#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/redistribution/reduce_partials.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents0 = std::array<index_t, 0>;
using Extents1 = std::array<index_t, 1>;
using Extents2 = std::array<index_t, 2>;

}  // namespace

TEST_CASE("several partials become replicated by one all-reduce") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    const auto x = placed<double, Placements<Partial<Sum>, Shard<1>>>(mesh, Extents2{5, 3}, 0);
    const auto y = placed<double, Placements<Partial<Sum>, Replicate>>(mesh, Extents1{7}, 1);
    const auto z = placed<double, Placements<Partial<Sum>, Replicate>>(mesh, Extents0{}, 2);
    const auto e = placed<double, Placements<Partial<Sum>, Shard<0>>>(mesh, Extents1{0}, 3);
    CommTrace trace(world);
    const auto [a, b, c, d] = reduce_partials(x, y, z, e);
    CHECK(trace.count() == 1);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    CHECK(trace.events()[0].group == "dp");
    CHECK(trace.events()[0].operation == "reduce_partials");
    static_assert(std::is_same_v<decltype(a)::placements_type, Placements<Replicate, Shard<1>>>);
    static_assert(std::is_same_v<decltype(b)::placements_type, Placements<Replicate, Replicate>>);
    check_equal(a, expected(x, 0));
    check_equal(b, expected(y, 1));
    check_equal(c, expected(z, 2));
    check_equal(d, expected(e, 3));
  });
}

TEST_CASE("partials on several axes are reduced over all of them at once") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    using P = Placements<Partial<Max>, Partial<Max>>;
    const auto x = placed<std::int64_t, P>(mesh, Extents2{5, 3}, 0);
    const auto y = placed<std::int64_t, P>(mesh, Extents1{7}, 1);
    CommTrace trace(world);
    const auto [a, b] = reduce_partials(x, y);
    CHECK(trace.count() == 1);
    check_equal(a, expected(x, 0));
    check_equal(b, expected(y, 1));
  });
}

TEST_CASE("nothing is communicated where an axis has one rank or nothing is partial") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Partial<Sum>, Shard<0>>>(mesh, Extents2{5, 3}, 0);
    const auto y = placed<double, Placements<Replicate, Shard<0>>>(mesh, Extents2{5, 3}, 0);
    CommTrace trace(world);
    const auto [a] = reduce_partials(x);
    const auto [b] = reduce_partials(y);
    CHECK(trace.events().empty());
    check_equal(a, expected(x, 0));
    check_equal(b, expected(y, 0));
    a.to_local().fill_(0);  // does not change the operands
    check_equal(b, expected(y, 0));
  });
}
