// Meshes: coordinates, sub-meshes, flattened groups, errors.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "device.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// The sum of a number over the ranks of a group.
int sum_over(Communicator& group, int mine) {
  const auto total = Tensor<std::int32_t, 1>({1}, {mine}).to(TestDevice{});
  Collective call;
  call.kind = CollectiveKind::all_reduce;
  call.source = total.view();
  call.destination = total.view();
  group.run(call);
  return total.item();
}

}  // namespace

TEST_CASE("axes are named by their types") {
  CHECK(axis_name<dp>() == "dp");
  struct local_axis : axis {};
  CHECK(axis_name<local_axis>() == "local_axis");
  CHECK(axis_name<flat<dp, row>>() == "dp.row");
}

TEST_CASE("ranks stand row-major: the last axis varies fastest") {
  on_ranks({6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 3}, TestDevice{});
    CHECK(mesh.size() == 6);
    CHECK(mesh.extent(dp{}) == 2);
    CHECK(mesh.extent(tp{}) == 3);
    CHECK(mesh.coordinate(dp{}) == world.rank() / 3);
    CHECK(mesh.coordinate(tp{}) == world.rank() % 3);
    CHECK(mesh.describe() == "dp=2 x tp=3");
    CHECK(sum_over(mesh.group(dp{}), world.rank()) == 2 * (world.rank() % 3) + 3);
    CHECK(sum_over(mesh.group(tp{}), world.rank()) == 9 * (world.rank() / 3) + 3);
    CHECK(&mesh.group(tp{}) == &mesh.group(tp{}));
  });
}

TEST_CASE("a sub-mesh has the ranks that differ along its axes only") {
  on_ranks({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, cp, tp>(world, {2, 2, 2}, TestDevice{});
    const auto line = mesh[tp{}];
    CHECK(line.size() == 2);
    CHECK(line.coordinate(tp{}) == mesh.coordinate(tp{}));
    CHECK(line.state().world_ranks() ==
          std::vector<int>{world.rank() / 2 * 2, world.rank() / 2 * 2 + 1});
    const auto plane = submesh(mesh, dp{}, tp{});
    CHECK(plane.describe() == "dp=2 x tp=2");
    CHECK(plane.coordinate(dp{}) == world.rank() / 4);
    const int c = world.rank() / 2 % 2;
    CHECK(plane.state().world_ranks() == std::vector<int>{2 * c, 2 * c + 1, 2 * c + 4, 2 * c + 5});
    const auto both = flatten(mesh, dp{}, tp{});
    CHECK(both.size() == 4);
    CHECK(both.describe() == "dp.tp=4");
    CHECK(both.coordinate()[0] == world.rank() / 4 * 2 + world.rank() % 2);
    CHECK(sum_over(both.communicator(), 1 << world.rank()) == (c == 0 ? 0b00110011 : 0b11001100));
  });
}

TEST_CASE("meshes are equal if they have the same ranks at the same places") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    CHECK(mesh == init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{}));
    CHECK(!(mesh == init_device_mesh<dp, tp>(world, {4, 1}, TestDevice{})));
    CHECK(!(mesh ==
            init_device_mesh<dp, tp>(world, {2, 2}, std::vector<int>{0, 2, 1, 3}, TestDevice{})));
  });
}

TEST_CASE("a mesh of some ranks can be used by these only") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, std::vector<int>{3, 1}, TestDevice{});
    CHECK(mesh.is_member() == (world.rank() % 2 == 1));
    if (mesh.is_member()) {
      CHECK(mesh.coordinate(tp{}) == (world.rank() == 3 ? 0 : 1));
      CHECK(sum_over(mesh.communicator(), world.rank()) == 4);
    } else {
      CHECK(error_of([&] {
              (void)mesh.coordinate();
            }).find("this rank is outside of the mesh [mesh tp=2") != std::string::npos);
    }
  });
}

TEST_CASE("an impossible mesh is an error that names the mismatch") {
  on_ranks({4}, [](World& world) {
    CHECK(error_of([&] { init_device_mesh<dp, tp>(world, {2, 3}, TestDevice{}); }) ==
          "init_device_mesh: the mesh has 6 positions, but the group has 4 ranks [mesh dp=2 x "
          "tp=3; rank " +
              std::to_string(world.rank()) + "]");
    CHECK(error_of([&] {
            init_device_mesh<dp, tp>(world, {-2, -2}, TestDevice{});
          }).find("0 positions") != std::string::npos);
    CHECK(error_of([&] {
            init_device_mesh<tp>(world, {2}, std::vector<int>{0, 4}, TestDevice{});
          }).find("rank 4 is outside of the world of 4 ranks") != std::string::npos);
    CHECK(error_of([&] {
            init_device_mesh<tp>(world, {2}, std::vector<int>{1, 1}, TestDevice{});
          }).find("rank 1 is listed twice") != std::string::npos);
    CHECK(error_of([&] {
            init_device_mesh<tp>(world, {3}, std::vector<int>{0, 1}, TestDevice{});
          }).find("multiply to the number of listed ranks, 2 [") != std::string::npos);
    constexpr index_t huge = index_t(1) << 62;
    CHECK(contains(error_of([&] { init_device_mesh<dp, tp>(world, {huge + 1, 4}, TestDevice{}); }),
                   "the mesh has 9223372036854775807 positions, but the group has 4 ranks"));
    CHECK(contains(error_of([&] {
                     init_device_mesh<dp, tp>(world, {huge + 1, 4}, {0, 1, 2, 3}, TestDevice{});
                   }),
                   "the extents must be positive and multiply to the number of listed ranks, 4 ["));
    CHECK(contains(error_of([&] { init_device_mesh<dp, tp>(world, {huge, 0}, TestDevice{}); }),
                   "the mesh has 0 positions, but the group has 4 ranks"));
  });
}

TEST_CASE("one process stands for any rank of a large mesh") {
  const World world(dry_communicator(9999, 16384));
  const auto mesh = init_device_mesh<pp, dp, tp>(world, {16, 128, 8}, TestDevice{});
  CHECK(mesh.coordinate(pp{}) == 9999 / 1024);
  CHECK(mesh.coordinate(dp{}) == 9999 % 1024 / 8);
  CHECK(mesh.coordinate(tp{}) == 9999 % 8);
  CHECK(mesh.group(dp{}).size() == 128);
}
