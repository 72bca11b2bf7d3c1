#include <array>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents2 = std::array<index_t, 2>;
using Extents3 = std::array<index_t, 3>;

}  // namespace

TEST_CASE("dimensions change places in values and placements, nothing moves") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>, Partial<Sum>>([&](auto p) {
      for (const Extents3 extents : {Extents3{5, 3, 4}, {0, 2, 3}, {1, 1, 1}}) {
        const auto x = placed<double, decltype(p)>(mesh, extents, 0);
        const auto a = expected(x, 0);
        CommTrace trace(world);
        const auto transposed = permute(x, dim<2, 0, -2>{});
        const auto swapped = transpose(x, dim<0, -1>{});
        CHECK(trace.events().empty());
        CHECK(transposed.to_local().data() == x.to_local().data());
        check_equal(transposed, array_of<double>({extents[2], extents[0], extents[1]},
                                                 [&](const naive::Indices& i) {
                                                   return a.at({i[1], i[2], i[0]});
                                                 }));
        check_equal(swapped, array_of<double>({extents[2], extents[1], extents[0]},
                                              [&](const naive::Indices& i) {
                                                return a.at({i[2], i[1], i[0]});
                                              }));
      }
    });
  });
}

TEST_CASE("the placements of a transpose stand in its type") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<float, Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 3}, 0);
    // y[S1,S0] = transpose(x[S0,S1])
    static_assert(
        std::is_same_v<decltype(transpose(x))::placements_type, Placements<Shard<1>, Shard<0>>>);
    static_assert(
        std::is_same_v<decltype(transpose(transpose(x))), std::remove_const_t<decltype(x)>>);
    CHECK(transpose(x).shape() == Extents2{3, 5});
    check_equal(transpose(x).redistribute(Shard<0>{}, Replicate{}),
                array_of<float>({3, 5}, [&](const naive::Indices& i) {
                  return expected(x, 0).at({i[1], i[0]});
                }));
  });
}

TEST_CASE("a new dimension shifts those after it") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, Extents2{5, 3}, 0);
      auto a = expected(x, 0);
      a.shape = {1, 5, 3};
      check_equal(unsqueeze(x, dim<0>{}), a);
      a.shape = {5, 1, 3};
      check_equal(unsqueeze(x, dim<1>{}), a);
      a.shape = {5, 3, 1};
      check_equal(unsqueeze(x, dim<-1>{}), a);
    });
    const auto x = placed<double, Placements<Shard<1>>>(mesh, Extents2{5, 3}, 0);
    static_assert(
        std::is_same_v<decltype(unsqueeze(x, dim<1>{}))::placements_type, Placements<Shard<2>>>);
    static_assert(
        std::is_same_v<decltype(unsqueeze(x, dim<2>{}))::placements_type, Placements<Shard<1>>>);
  });
}
