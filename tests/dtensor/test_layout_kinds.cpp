// DTensors under every kind of placement: factories, random numbers, from_local, distribution,
// redistribution, operations; values compared with local tensors and with ownership cut by hand.
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/arange.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/initialisers.hpp>
#include <cleave/dtensor/redistribute_all.hpp>
#include <cleave/dtensor/visualize.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using naive::Indices;

namespace {

/// What this rank owns of the array whose element [i, j] is 10 i + j.
template <class P>
Tensor<double, 2> part(P, index_t rows, index_t columns, const MeshState& mesh) {
  const Layout layout = layout_of<P, 2>;
  const Indices shape{rows, columns}, extents = naive::to_indices(mesh.extents()),
                                      at = naive::to_indices(mesh.coordinate());
  Tensor<double, 2> x({index_t(naive::owned(layout, 0, shape, extents, at).size()),
                       index_t(naive::owned(layout, 1, shape, extents, at).size())});
  index_t i = 0;
  for (const Indices& index : naive::elements(layout, shape, extents, at))
    x.data()[i++] = double(10 * index[0] + index[1]);
  return x;
}

template <class X>
bool equal(const X& a, const X& b) {
  if (a.shape() != b.shape()) return false;
  const auto x = a.clone(), y = b.clone();
  return std::equal(x.data(), x.data() + x.size(), y.data());
}

template <class F>
void each_kind(const F& f) {
  f(Replicate{}), f(Shard<0>{}), f(Balanced<0>{}), f(Balanced<-1>{}), f(BlockCyclic<0, 1>{}),
      f(BlockCyclic<1, 2>{}), f(Owned<1>{});
}

template <class Mesh, class P>
void check_all(const Mesh& mesh, P placements) {
  const auto& state = mesh.state();
  CAPTURE(to_string(placements));
  const auto whole = part(replicated_t<Mesh::axis_count>{}, 7, 5, state);
  const auto mine = part(placements, 7, 5, state);

  const auto x = distribute_tensor(whole, mesh, placements);
  CHECK(equal(x.to_local(), mine));
  CHECK(equal(x.full_tensor(), whole));
  const auto y = from_local(mine, mesh, placements, {.run_check = true});
  CHECK(y.shape() == std::array<index_t, 2>{7, 5});
  CHECK(equal(y.full_tensor(), whole));
  const auto z = from_local(mine, mesh, placements, {7, 5});
  CHECK(equal(z.to_local(), mine));

  index_t elements = 0;
  x.each_local_box([&](const Box& box, const Box& local) {
    const auto there = whole[box], here = mine[local];
    CHECK(equal(there, here));
    elements += box.volume();
  });
  CHECK(elements == mine.size());
}

}  // namespace

TEST_CASE("arrays are made, distributed and gathered under every kind of placement on one axis") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    each_kind([&](auto placement) { check_all(mesh, Placements<decltype(placement)>{}); });
  });
}

TEST_CASE("arrays are made, distributed and gathered under kinds of placement on two axes") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {world.size() / 2, 2});
    check_all(mesh, Placements<BlockCyclic<0, 2>, BlockCyclic<1, 2>>{});
    check_all(mesh, Placements<BlockCyclic<0, 1>, Shard<0>>{});
    check_all(mesh, Placements<Shard<0>, BlockCyclic<0, 1>>{});
    check_all(mesh, Placements<Replicate, BlockCyclic<1, 3>>{});
    check_all(mesh, Placements<Balanced<1>, Owned<1>>{});
    check_all(mesh, Placements<Owned<0, 1>, BlockCyclic<1, 2>>{});
  });
}

TEST_CASE("factories and random numbers give the same global array under every kind") {
  on_ranks({3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const auto numbers = arange<float>(3, 20, mesh).to_local();
    const auto identity = eye<float>(6, mesh).to_local();
    manual_seed(mesh, 5);
    const auto normal = randn<float>({6, 9}, mesh).to_local();
    const auto rotation = orthogonal_(empty<float>({6, 9}, mesh)).to_local();
    each_kind([&](auto p) {
      manual_seed(mesh, 5);
      CHECK(equal(randn<float>({6, 9}, mesh, p).full_tensor(), normal));
      CHECK(equal(orthogonal_(empty<float>({6, 9}, mesh, p)).full_tensor(), rotation));
      CHECK(equal(eye<float>(6, mesh, p).full_tensor(), identity));
      CHECK(
          equal(ones<float>({6, 9}, mesh, p).full_tensor(), ones<float>({6, 9}, mesh).to_local()));
    });
    CHECK(equal(arange<float>(3, 20, mesh, BlockCyclic<0, 2>{}).full_tensor(), numbers));
    CHECK(equal(arange<float>(3, 20, mesh, Balanced<0>{}).full_tensor(), numbers));
    CHECK(equal(arange<float>(3, 20, mesh, Owned<2>{}).full_tensor(), numbers));
  });
}

TEST_CASE("several tensors are redistributed together, asynchronously, and to another mesh") {
  on_ranks({4}, [](World& world) {
    const auto line = init_device_mesh<axes::tp>(world, {4});
    const auto grid = init_device_mesh<axes::dp, axes::tp>(world, {2, 2});
    const auto some = init_device_mesh<axes::cp>(world, {3}, std::vector<int>{3, 0, 1});
    const auto whole = part(Placements<Replicate>{}, 9, 6, line.state());
    const auto x = distribute_tensor(whole, line, BlockCyclic<0, 2>{});
    const auto y = distribute_tensor(whole, line, Balanced<1>{});
    const auto [a, b, c] =
        redistribute_all(to(x, Shard<1>{}), to(y, BlockCyclic<1, 1>{}), to(y, Owned<3>{}));
    CHECK(equal(a.to_local(), part(Placements<Shard<1>>{}, 9, 6, line.state())));
    CHECK(equal(b.to_local(), part(Placements<BlockCyclic<1, 1>>{}, 9, 6, line.state())));
    CHECK(equal(c.to_local(), part(Placements<Owned<3>>{}, 9, 6, line.state())));
    const auto later = x.redistribute_async(BlockCyclic<1, 2>{});
    CHECK(
        equal(later.wait().to_local(), part(Placements<BlockCyclic<1, 2>>{}, 9, 6, line.state())));
    const auto there = x.redistribute(grid, BlockCyclic<0, 1>{}, BlockCyclic<1, 4>{});
    CHECK(equal(there.to_local(),
                part(Placements<BlockCyclic<0, 1>, BlockCyclic<1, 4>>{}, 9, 6, grid.state())));
    const auto fewer = there.redistribute(some, BlockCyclic<0, 2>{});
    if (some.is_member())
      CHECK(equal(fewer.to_local(), part(Placements<BlockCyclic<0, 2>>{}, 9, 6, some.state())));
    const auto back = fewer.redistribute(line, Balanced<0>{});
    CHECK(equal(back.to_local(), part(Placements<Balanced<0>>{}, 9, 6, line.state())));
  });
}

TEST_CASE("a picture of a block-cyclic array has one cell per block") {
  on_ranks({4}, [](World& world) {
    const auto grid = init_device_mesh<axes::dp, axes::tp>(world, {2, 2});
    const auto x = zeros<float>({5, 4}, grid, BlockCyclic<0, 2>{}, Balanced<1>{});
    CHECK(visualize_sharding(x) ==
          "    | 0:2 | 2:4\n"
          "0:2 | 0   | 1\n"
          "2:4 | 2   | 3\n"
          "4:5 | 0   | 1\n");
    CHECK(to_string(x.placements()) == "(BlockCyclic(0, 2), Balanced(1))");
  });
}

TEST_CASE("wrong parts and owners beyond the axis are errors on every rank") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const Tensor<float, 1> four({4});
    CHECK(cleave::testing::contains(
        error_of([&] { from_local(four, mesh, BlockCyclic<0, 3>{}); }),
        "the local tensors add up to [8], of which rank 0 owns [5], but it passed [4]"));
    CHECK(cleave::testing::contains(error_of([&] { zeros<float>({4}, mesh, Owned<2>{}); }),
                                    "Owned(2, 0) names a rank that an axis of 2 ranks does not"));
  });
}
