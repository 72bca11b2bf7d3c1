// What goes into a std::ostream: extents, placements, meshes and DTensors, without communication.
#include <array>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/visualize.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

template <class X>
std::string streamed(const X& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

}  // namespace

TEST_CASE("shapes, extents and placements go into a stream as their texts") {
  CHECK(streamed(Shape(std::array<index_t, 2>{5, 6})) == "[5, 6]");
  CHECK(streamed(Tensor<float, 3>({2, 0, 4}).shape()) == "[2, 0, 4]");
  CHECK(streamed(Shard<1>{}) == "Shard(1)");
  CHECK(streamed(Partial<Max>{}) == "Partial(max)");
  CHECK(streamed(Placements<Shard<-1>, Replicate>{}) == "(Shard(-1), Replicate)");
  CHECK(streamed(layout_of<Placements<Shard<-1>, Replicate>, 2>) == "(Shard(1), Replicate)");
}

TEST_CASE("a mesh and a DTensor go into a stream as their types, on any single rank") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto x = zeros<float>({7, 3}, mesh, Shard<0>{}, Replicate{});
    if (world.rank() != 1) return;  // if it communicated, rank 1 would wait
    CHECK(streamed(mesh) == "dp=2 x tp=2");
    CHECK(streamed(x) == "f32[7@dp, 3] on dp=2 x tp=2");
    CHECK(streamed(x.placements()) == "(Shard(0), Replicate)");
    CHECK(streamed(x.shape()) == "[7, 3]");
  });
}
