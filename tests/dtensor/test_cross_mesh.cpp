// Redistribution between two meshes of one world, and random walks over meshes and placements.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>

#include "device.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::elements_of;
using cleave::testing::placed;
using naive::Indices;
using naive::layouts_over;
using naive::shape_of;

namespace {

/// Moves a tensor from a layout on one mesh to a layout on another. Returns the number of wrong
/// elements, and adds the bytes received beyond the minimum to `excess`.
int wrong_elements(const MeshState& from_mesh, const Layout& from, const MeshState& to_mesh,
                   const Layout& to, const Indices& shape, index_t& excess) {
  const Indices from_extents = naive::to_indices(from_mesh.extents());
  const Indices to_extents = naive::to_indices(to_mesh.extents());
  std::vector<Indices> mine, wanted;
  redistribution::Block block =
      redistribution::allocate<TestDevice>(DType::int64, Shape::filled(int(shape.size()), 0));
  if (from_mesh.is_member()) {
    const Indices at = naive::to_indices(from_mesh.coordinate());
    mine = naive::elements(from, shape, from_extents, at);
    Shape local;
    for (int d = 0; d < int(shape.size()); ++d)
      local[local.dims++] = index_t(naive::owned(from, d, shape, from_extents, at).size());
    std::vector<std::int64_t> held;
    for (const Indices& index : mine)
      held.push_back(naive::addend(index, naive::partial_coordinate(from, at)));
    block = placed(held, local);
  }
  if (to_mesh.is_member())
    wanted = naive::elements(to, shape, to_extents, naive::to_indices(to_mesh.coordinate()));
  // ranks outside the source mesh do not know the shape
  Shape global = from_mesh.is_member() ? shape_of(shape) : Shape::filled(int(shape.size()), 0);
  CommTrace trace(*from_mesh.world());
  const auto result =
      redistribution::cross_redistribute<TestDevice>(from, to, block, from_mesh, to_mesh, global);
  if (!from.has_partial()) {
    index_t lacking = 0;
    for (const Indices& index : wanted)
      lacking += std::find(mine.begin(), mine.end(), index) == mine.end();
    for (const CommEvent& event : trace.events())
      if (event.kind == CollectiveKind::exchange) excess += event.elements - lacking;
  }
  if (!to_mesh.is_member()) return result.view.size() == 0 ? 0 : 1;
  if (result.view.size() != index_t(wanted.size()) || !(global == shape_of(shape))) return 1 << 20;
  int wrong = 0;
  const auto got = elements_of<std::int64_t>(result);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wrong += got[i] != naive::value<std::int64_t>(from, from_extents, wanted[i]);
  return wrong;
}

std::vector<Layout> layouts(int axes, bool partials) {
  std::vector<Placement> alphabet{Placement::replicate(), Placement::shard(0), Placement::shard(1)};
  if (partials) {
    alphabet.push_back(Placement::partial(ReduceOp::sum));
    alphabet.push_back(Placement::partial(ReduceOp::max));
  }
  return layouts_over(axes, alphabet);
}

void check_all(const MeshState& from_mesh, const MeshState& to_mesh, const Indices& shape) {
  index_t excess = 0;
  for (const Layout& from : layouts(from_mesh.extents().dims, true))
    for (const Layout& to : layouts(to_mesh.extents().dims, false)) {
      const int wrong = wrong_elements(from_mesh, from, to_mesh, to, shape, excess);
      CHECK_MESSAGE(wrong == 0, to_string(from), " on ", from_mesh.describe(), " -> ",
                    to_string(to), " on ", to_mesh.describe(), ", rank ", from_mesh.world_rank());
    }
  CHECK(excess == 0);  // each rank receives only what it must own and lacks
}

}  // namespace

TEST_CASE("between meshes of other extents, orders and subsets every rank gets its part") {
  on_ranks({4}, [](World& world) {
    const auto square = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto line = init_device_mesh<row>(world, {4}, TestDevice{});
    const auto reversed =
        init_device_mesh<dp, tp>(world, {2, 2}, std::vector<int>{3, 2, 1, 0}, TestDevice{});
    const auto some = init_device_mesh<row>(world, {3}, std::vector<int>{2, 0, 3}, TestDevice{});
    const auto one = init_device_mesh<row>(world, {1}, std::vector<int>{1}, TestDevice{});
    for (const Indices& shape : std::vector<Indices>{{5, 6}, {1, 3}, {0, 2}}) {
      check_all(square.state(), line.state(), shape);
      check_all(line.state(), square.state(), shape);
      check_all(square.state(), reversed.state(), shape);
      check_all(square.state(), some.state(), shape);
      check_all(some.state(), square.state(), shape);
      check_all(some.state(), one.state(), shape);  // disjoint
      check_all(one.state(), some.state(), shape);
    }
  });
}

TEST_CASE("a tensor moves from two ranks to six and back") {
  on_ranks({8}, [](World& world) {
    const auto few = init_device_mesh<row>(world, {2}, std::vector<int>{6, 1}, TestDevice{});
    const auto many =
        init_device_mesh<dp, tp>(world, {2, 3}, std::vector<int>{0, 1, 2, 3, 4, 5}, TestDevice{});
    Tensor<float, 2> whole({7, 5});
    for (index_t i = 0; i < 35; ++i) whole.data()[i] = float(i);
    const auto x = distribute_tensor(whole, few, Shard<0>{});
    CHECK(x.to_local().empty() == !few.is_member());
    const auto y = x.redistribute(many, Shard<1>{}, Shard<0>{});
    CHECK(y.shape() ==
          (few.is_member() || many.is_member() ? std::array<index_t, 2>{7, 5} : y.shape()));
    const auto back = y.redistribute(few, Replicate{});
    if (few.is_member())
      for (index_t i = 0; i < 35; ++i) CHECK(back.to_local().to(Host{}).data()[i] == float(i));
    else CHECK(back.to_local().empty());
  });
}

TEST_CASE("a temporary moves to another mesh as a named tensor does") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()}, TestDevice{});
    const auto other = init_device_mesh<dp>(world, {2}, std::vector<int>{1, 0}, TestDevice{});
    Tensor<float, 1> whole({5});
    for (index_t i = 0; i < 5; ++i) whole.data()[i] = float(i);
    auto x = distribute_tensor(whole, mesh, Shard<0>{});
    const auto check = [&](const auto& y) {  // rank 1 has three elements, rank 0 the last two
      static_assert(std::is_same_v<decltype(y.placements()), Placements<Shard<0>>>);
      const index_t first = world.rank() == 1 ? 0 : 3;
      const index_t count = world.rank() == 1 ? 3 : world.rank() == 0 ? 2 : 0;
      const auto part = y.to_local().to(Host{});
      REQUIRE(part.size() == count);
      for (index_t i = 0; i < count; ++i) CHECK(part.data()[i] == float(first + i));
    };
    check(x.redistribute(Replicate{}).redistribute(other, Shard<0>{}));
    check(x.redistribute(Replicate{}).redistribute(other, Placements<Shard<0>>{}));
    check(x.redistribute(other, Placements<Shard<0>>{}));
    check(std::move(x).redistribute(other, Shard<-1>{}));
  });
}

TEST_CASE("meshes of different groups of ranks are refused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2}, TestDevice{});
    const auto other = init_device_mesh<row>(world.communicator().duplicate(), {2}, TestDevice{});
    const auto x = zeros<float>({4}, mesh, Shard<0>{});
    CHECK_THROWS_WITH_AS((void)x.redistribute(other, Replicate{}),
                         doctest::Contains("made from different groups of ranks"), Error);
  });
}
