// Random walks over placements and meshes: a tensor keeps its value on any path.
#include <array>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/cross_mesh.hpp>
#include <cleave/redistribute/run_plan.hpp>

#include "device.hpp"
#include "effort.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::elements_of;
using cleave::testing::placed;
using naive::Indices;
using naive::shape_of;

namespace {

/// A small generator, the same on every rank (Marsaglia's xorshift64*).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  int below(int n) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return int((state_ * 2685821657736338717ull >> 33) % std::uint64_t(n));
  }

 private:
  std::uint64_t state_;
};

constexpr std::uint64_t seed = 20260711;

/// Meshes of all ranks and of some, with one to three axes, in rank order and reversed.
std::vector<std::shared_ptr<const MeshState>> meshes(World& world) {
  const int n = world.size();
  const auto ranks_of = communicator_on(TestDevice{}, world.shared_communicator());
  std::vector<std::shared_ptr<const MeshState>> result;
  std::vector<int> all, reversed;
  for (int r = 0; r < n; ++r) {
    all.push_back(r);
    reversed.insert(reversed.begin(), r);
  }
  const auto add = [&](const std::vector<int>& ranks, const Indices& extents) {
    bool member = false;
    for (const int r : ranks) member = member || r == world.rank();
    std::vector<std::string> names;
    for (std::size_t a = 0; a < extents.size(); ++a) names.push_back("a" + std::to_string(a));
    std::shared_ptr<Communicator> group;
    if (member) group = ranks_of->subgroup(ranks, "mesh");
    result.push_back(
        std::make_shared<const MeshState>(ranks_of, group, shape_of(extents), ranks, names));
  };
  add(all, {n});
  add(reversed, {1, n});
  for (int k = 2; k < n; ++k)
    if (n % k == 0) {
      add(all, {k, n / k});
      add(reversed, {n / k, 1, k});
    }
  if (n == 8) add(all, {2, 2, 2});
  if (n > 1) add(std::vector<int>(all.begin() + 1, all.end()), {n - 1});
  return result;
}

Layout random_layout(Random& random, int axes, int dims) {
  Layout layout;
  layout.axes = axes;
  for (int a = 0; a < axes; ++a)
    if (const int d = random.below(dims + 1); d < dims) layout[a] = Placement::shard(d);
  return layout;
}

/// Local elements of the global array 0, 1, 2, ..; empty outside the mesh.
redistribution::Block counting(const MeshState& mesh, const Layout& layout, const Indices& shape) {
  if (!mesh.is_member())
    return redistribution::allocate<TestDevice>(DType::int32, Shape::filled(int(shape.size()), 0));
  const Indices extents = naive::to_indices(mesh.extents());
  const Indices at = naive::to_indices(mesh.coordinate());
  Shape local;
  for (int d = 0; d < int(shape.size()); ++d)
    local[local.dims++] = index_t(naive::owned(layout, d, shape, extents, at).size());
  std::vector<std::int32_t> held;
  for (const Indices& index : naive::elements(layout, shape, extents, at)) {
    index_t linear = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) linear = linear * shape[d] + index[d];
    held.push_back(std::int32_t(linear));
  }
  return placed(held, local);
}

bool equal(const redistribution::Block& a, const redistribution::Block& b) {
  return a.view.extents == b.view.extents && a.view.contiguous() && b.view.contiguous() &&
         elements_of<std::int32_t>(a) == elements_of<std::int32_t>(b);
}

/// A stop of a walk.
struct Stop {
  const MeshState* mesh;
  Layout layout;
};

redistribution::Block move(const Stop& from, const Stop& to, const redistribution::Block& block,
                           const Indices& shape) {
  Shape global = shape_of(shape);
  if (from.mesh != to.mesh)
    return redistribution::cross_redistribute<TestDevice>(from.layout, to.layout, block, *from.mesh,
                                                          *to.mesh, global);
  return redistribution::run<TestDevice>(nullptr, from.layout, to.layout, block,
                                         {*from.mesh, global, "redistribute"});
}

void walk(World& world, int walks) {
  const auto places = meshes(world);
  Random random(seed + std::uint64_t(world.size()));
  if (!cleave::testing::thorough()) walks /= 10;
  int lost = 0, differing = 0, wrong = 0;
  for (int w = 0; w < walks; ++w) {
    Indices shape;
    for (int d = 1 + random.below(3); d > 0; --d) shape.push_back(random.below(7));
    const auto random_stop = [&] {
      const MeshState* mesh = places[std::size_t(random.below(int(places.size())))].get();
      return Stop{mesh, random_layout(random, mesh->extents().dims, int(shape.size()))};
    };
    const Stop a = random_stop(), b = random_stop(), c = random_stop();
    const redistribution::Block at_a = counting(*a.mesh, a.layout, shape);
    const redistribution::Block at_b = move(a, b, at_a, shape);
    lost += !equal(move(b, a, at_b, shape), at_a);
    const redistribution::Block at_c = move(b, c, at_b, shape);
    differing += !equal(at_c, move(a, c, at_a, shape));
    wrong += !equal(at_c, counting(*c.mesh, c.layout, shape));
  }
  CHECK(lost == 0);       // A -> B -> A is the identity
  CHECK(differing == 0);  // A -> B -> C = A -> C
  CHECK(wrong == 0);      // every stop holds the elements that it owns
}

}  // namespace

TEST_CASE("ten thousand random walks over placements and meshes lose nothing") {
  MESSAGE("seed ", seed);
  on_ranks({1, 2, 3, 4}, [](World& world) { walk(world, 2500); });
  on_ranks({6}, [](World& world) { walk(world, 1000); });
  on_ranks({8}, [](World& world) { walk(world, 1000); });
}
