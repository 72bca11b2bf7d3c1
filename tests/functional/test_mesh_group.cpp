// Functional collectives over meshes and their axes.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/functional.hpp>
#include <cleave/functional/mesh_group.hpp>

#include "members.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::members;

TEST_CASE("a mesh of one axis is a group, and so are axes of a larger one") {
  on_ranks({4, 6, 8}, [](World& world) {
    const int rank = world.rank(), columns = world.size() / 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, columns}, TestDevice{});
    const int row = rank / columns, column = rank % columns;
    const std::vector<int> along_dp{column, column + columns};
    std::vector<int> along_tp, all;
    for (int j = 0; j < columns; ++j) along_tp.push_back(row * columns + j);
    for (int r = 0; r < world.size(); ++r) all.push_back(r);
    CHECK(members(mesh[tp{}], rank) == along_tp);
    CHECK(members({mesh, tp{}}, rank) == along_tp);
    CHECK(members(mesh[dp{}], rank) == along_dp);
    CHECK(members({mesh, dp{}}, rank) == along_dp);
    CHECK(members({mesh, dp{}, tp{}}, rank) == all);
    CHECK(members(flatten(mesh, dp{}, tp{}), rank) == all);
    // the ranks in a list are relative to the group that the list is applied to
    if (column < 2)
      CHECK(members({functional::Group(mesh, tp{}), {1, 0}}, rank) ==
            std::vector<int>{along_tp[1], along_tp[0]});
    const Tensor<float, 1, TestDevice> x({3});
    x.fill_(float(rank));
    const auto over_tp = functional::all_reduce(x, Sum{}, {mesh, tp{}});
    const auto over_dp = functional::all_reduce(x, Sum{}, {mesh, dp{}});
    CHECK(over_dp->to(Host{})(2) == 2 * column + columns);
    CHECK(over_tp->to(Host{})(2) == row * columns * columns + columns * (columns - 1) / 2);
  });
}

TEST_CASE("two of three axes are a group in row-major order") {
  on_ranks({8}, [](World& world) {
    const int rank = world.rank();
    const auto mesh = init_device_mesh<pp, dp, tp>(world, {2, 2, 2}, TestDevice{});
    const int at_dp = rank / 2 % 2 * 2;
    CHECK(members({mesh, pp{}, tp{}}, rank) ==
          std::vector<int>{at_dp, at_dp + 1, at_dp + 4, at_dp + 5});
  });
}

TEST_CASE("the world and an axis with all of its ranks share a group") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, world.size()}, TestDevice{});
    const functional::Group group(mesh, tp{});
    CHECK(&group.communicator("test") == &communicator_on(TestDevice{}, world.communicator()));
    CHECK(group.axes() == "tp");
  });
}

TEST_CASE("traces and errors name a group by its axes") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, world.size()}, TestDevice{});
    const Tensor<float, 1, TestDevice> x({9});
    x.fill_(1);
    CommTrace trace(mesh);
    (void)functional::all_gather(x, 0, {mesh, tp{}});
    REQUIRE(trace.events().size() == 1);
    CHECK(trace.events()[0].group == "tp");
    const std::string text = "functional::reduce_scatter: dimension 0 has 9 elements, which the " +
                             std::to_string(world.size()) +
                             " ranks of group 'tp' cannot share equally; pad it, or redistribute a "
                             "DTensor, whose shards may differ [shapes [9]; rank " +
                             std::to_string(world.rank()) + "]";
    CHECK_THROWS_WITH_AS((void)functional::reduce_scatter(x, Sum{}, 0, {mesh, tp{}}), text.c_str(),
                         Error);
  });
}

TEST_CASE("a rank outside of a mesh cannot take part in its collectives") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2}, std::vector<int>{2, 0}, TestDevice{});
    const auto x = Tensor<float, 1>({1}, {float(world.rank())}).to(TestDevice{});
    if (world.rank() == 1)
      CHECK_THROWS_WITH_AS((void)functional::all_reduce(x, Sum{}, mesh),
                           "DeviceMesh: this rank is outside of the mesh [mesh dp=2; rank 1]",
                           Error);
    else CHECK(functional::all_reduce(x, Sum{}, mesh)->item() == 2);
  });
}
