// DTensors whose cut points or blocks are chosen at run time: made, distributed, measured from what
// ranks hold, redistributed between each other and all other kinds; compared with ownership by
// hand.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/arange.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/dtensor/redistribute_all.hpp>
#include <cleave/dtensor/visualize.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/explain.hpp>

#include "errors.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using naive::Indices;

namespace {

static_assert(
    sizeof(DTensor<float, 2, DeviceMesh<Host, axes::tp>, Placements<Shard<0>>>) ==
    sizeof(std::tuple<Tensor<float, 2>, DeviceMesh<Host, axes::tp>, std::array<index_t, 2>>));

/// What this rank owns of the array whose element [i, j] is 100 i + j.
template <class... P>
Tensor<double, 2> owned_part(const Placements<P...>& placements, index_t rows, index_t columns,
                             const MeshState& mesh) {
  const Layout layout = detail::with_numbers(layout_of<Placements<P...>, 2>, placements);
  const Indices shape{rows, columns}, extents = naive::to_indices(mesh.extents()),
                                      at = naive::to_indices(mesh.coordinate());
  Tensor<double, 2> x({index_t(naive::owned(layout, 0, shape, extents, at).size()),
                       index_t(naive::owned(layout, 1, shape, extents, at).size())});
  index_t i = 0;
  for (const Indices& index : naive::elements(layout, shape, extents, at))
    x.data()[i++] = double(100 * index[0] + index[1]);
  return x;
}

template <class X>
bool same_array(const X& a, const X& b) {
  if (a.shape() != b.shape()) return false;
  const auto x = a.clone(), y = b.clone();
  return std::equal(x.data(), x.data() + x.size(), y.data());
}

/// Parts of 0, 3, 1, 4, .. indices, as many as there are; the last one has the rest.
std::vector<index_t> some_points(index_t extent, index_t parts) {
  std::vector<index_t> points{0};
  for (index_t p = 0; p < parts; ++p) points.push_back(std::min(extent, points.back() + 3 * p % 5));
  points.back() = extent;
  return points;
}
/// Everything belongs to the last part but one index of each before.
std::vector<index_t> other_points(index_t extent, index_t parts) {
  std::vector<index_t> points;
  for (index_t p = 0; p < parts; ++p) points.push_back(std::min(extent, p));
  points.push_back(extent);
  return points;
}

template <class F>
void each_open_kind(index_t rows, index_t columns, index_t ranks, const F& f) {
  f(Cuts<0>(some_points(rows, ranks)));
  f(Cuts<0>(other_points(rows, ranks)));
  f(Cuts<-1>(some_points(columns, ranks)));
  f(BlockCyclic<0>(2));
  f(BlockCyclic<1>(3));
}

}  // namespace

TEST_CASE("arrays are made, distributed, adopted and gathered under cuts chosen at run time") {
  on_ranks({1, 2, 3, 5, 8}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const auto whole = owned_part(Placements<Replicate>{}, 7, 5, mesh.state());
    const auto numbers = arange<double>(3, 10, mesh).to_local();
    each_open_kind(7, 5, world.size(), [&](auto p) {
      const Placements<decltype(p)> placements(p);
      CAPTURE(to_string(placements));
      const auto mine = owned_part(placements, 7, 5, mesh.state());
      const auto x = distribute_tensor(whole, mesh, p);
      CHECK(same_array(x.to_local(), mine));
      CHECK(to_string(x.placements()) == to_string(detail::with_numbers(x.layout, placements)));
      CHECK(same_array(x.full_tensor(), whole));
      CHECK(zeros<float>({7, 5}, mesh, p).to_local().shape() == mine.shape());
      CHECK(same_array(from_local(mine, mesh, p).full_tensor(), whole));
      CHECK(same_array(from_local(mine, mesh, p, {7, 5}).full_tensor(), whole));
      CHECK(
          same_array(from_local(mine, mesh, placements, {.run_check = true}).full_tensor(), whole));
      index_t elements = 0;
      x.each_local_box([&](const Box& box, const Box& local) {
        const auto there = whole[box], here = mine[local];
        CHECK(same_array(there, here));
        elements += box.volume();
      });
      CHECK(elements == mine.size());
      CHECK(same_array(distribute_tensor(x, mesh, placements).to_local(), mine));
    });
    const Cuts<0> cuts(some_points(7, world.size()));
    CHECK(same_array(arange<double>(3, 10, mesh, cuts).full_tensor(), numbers));
    manual_seed(mesh, 5);
    const auto normal = randn<float>({7, 5}, mesh).to_local();
    manual_seed(mesh, 5);
    CHECK(same_array(randn<float>({7, 5}, mesh, cuts).full_tensor(), normal));
  });
}

TEST_CASE("parts of any extents become one array, whose cuts are measured") {
  on_ranks({1, 3, 4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const Cuts<0> cuts(some_points(9, world.size()));
    const auto mine = owned_part(Placements<Cuts<0>>(cuts), 9, 4, mesh.state());
    const auto x = from_local(mine, mesh, Cuts<0>{});
    CHECK(x.shape() == std::array<index_t, 2>{9, 4});
    CHECK(std::ranges::equal(detail::with_each(x.placements(), [](auto p) { return p; }).points(),
                             cuts.points()));
    CHECK(same_array(x.full_tensor(), owned_part(Placements<Replicate>{}, 9, 4, mesh.state())));
    CHECK(same_array(from_local(mine, mesh, Cuts<0>{}, {9, 4}).full_tensor(), x.full_tensor()));
    if (world.size() < 4) return;
    const auto grid = init_device_mesh<axes::dp, axes::tp>(world, {world.size() / 2, 2});
    const Placements<Cuts<0>, Shard<0>> nested(Cuts<0>(some_points(9, world.size() / 2)), {});
    const auto y = from_local(owned_part(nested, 9, 4, grid.state()), grid, Cuts<0>{}, Shard<0>{});
    CHECK(to_string(y.placements()) == to_string(nested));
    CHECK(same_array(y.full_tensor(), x.full_tensor()));
  });
}

TEST_CASE("tensors are redistributed between cuts chosen at run time and all other kinds") {
  on_ranks({1, 2, 3, 4, 8}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const auto whole = owned_part(Placements<Replicate>{}, 11, 6, mesh.state());
    const auto check = [&](const auto& x, auto p) {
      const Placements<decltype(p)> placements(p);
      const auto y = x.redistribute(p);
      CHECK_MESSAGE(same_array(y.to_local(), owned_part(placements, 11, 6, mesh.state())),
                    to_string(x.placements()), " -> ", to_string(placements));
      CHECK(y.redistribute(y.placements()).to_local().data() == y.to_local().data());
    };
    each_open_kind(11, 6, world.size(), [&](auto p) {
      const auto x = distribute_tensor(whole, mesh, p);
      each_open_kind(11, 6, world.size(), [&](auto q) { check(x, q); });
      check(x, Replicate{}), check(x, Shard<0>{}), check(x, Balanced<1>{});
      check(x, BlockCyclic<0, 2>{}), check(x, Owned<0>{});
      check(distribute_tensor(whole, mesh, Shard<1>{}), p);
      check(distribute_tensor(whole, mesh, Replicate{}), p);
      check(distribute_tensor(whole, mesh, Balanced<0>{}), p);
      check(distribute_tensor(whole, mesh, BlockCyclic<1, 2>{}), p);
      check(distribute_tensor(whole, mesh, Owned<0, 1>{}), p);
    });
  });
}

TEST_CASE("cuts chosen at run time combine with other placements on two axes") {
  on_ranks({4, 6}, [](World& world) {
    const index_t rows = world.size() / 2;
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {rows, 2});
    const auto whole = owned_part(Placements<Replicate, Replicate>{}, 9, 7, mesh.state());
    const auto x = distribute_tensor(whole, mesh, Shard<0>{}, Balanced<1>{});
    const auto check = [&](auto... p) {
      const Placements<decltype(p)...> placements(p...);
      CAPTURE(to_string(placements));
      const auto mine = owned_part(placements, 9, 7, mesh.state());
      const auto y = x.redistribute(p...);
      CHECK(same_array(y.to_local(), mine));
      CHECK(same_array(distribute_tensor(whole, mesh, placements).to_local(), mine));
      CHECK(same_array(y.full_tensor(), whole));
      CHECK(same_array(y.redistribute(Owned<1>{}, Shard<1>{}).to_local(),
                       owned_part(Placements<Owned<1>, Shard<1>>{}, 9, 7, mesh.state())));
    };
    check(Cuts<0>(some_points(9, rows)), Cuts<1>(other_points(7, 2)));
    check(Cuts<0>(other_points(9, rows)), Shard<0>{});
    check(Cuts<1>(some_points(7, rows)), BlockCyclic<1>(1));
    check(Replicate{}, Cuts<1>(other_points(7, 2)));
    check(BlockCyclic<0>(2), Cuts<1>(other_points(7, 2)));
    check(BlockCyclic<0>(1), BlockCyclic<0, 2>{});
  });
}

TEST_CASE("cuts chosen at run time reach several tensors together, later, and other meshes") {
  on_ranks({4}, [](World& world) {
    const auto line = init_device_mesh<axes::tp>(world, {4});
    const auto grid = init_device_mesh<axes::dp, axes::tp>(world, {2, 2});
    const auto some = init_device_mesh<axes::cp>(world, {3}, std::vector<int>{3, 0, 1});
    const auto whole = owned_part(Placements<Replicate>{}, 9, 6, line.state());
    if (world.rank() == 1) Cuts<0>{0, 1234};  // equal points may have other numbers on other ranks
    const Cuts<0> rows{0, 0, 5, 6, 9};
    const Cuts<1> columns{0, 4, 4, 5, 6};
    const auto x = distribute_tensor(whole, line, rows);
    const auto y = distribute_tensor(whole, line, Balanced<1>{});
    const auto [a, b, c] = redistribute_all(to(x, columns), to(y, rows), to(x, BlockCyclic<1>(2)));
    CHECK(same_array(a.to_local(), owned_part(Placements<Cuts<1>>(columns), 9, 6, line.state())));
    CHECK(same_array(b.to_local(), x.to_local()));
    CHECK(
        same_array(c.to_local(), owned_part(Placements<BlockCyclic<1, 2>>{}, 9, 6, line.state())));
    const std::vector<std::remove_cvref_t<decltype(x)>> two{x,
                                                            x.redistribute(Cuts<0>{0, 1, 2, 3, 9})};
    for (const auto& z : redistribute_all(two, rows)) CHECK(same_array(z.to_local(), x.to_local()));
    const auto later = x.redistribute_async(columns);
    CHECK(same_array(later.wait().to_local(), a.to_local()));
    const auto there = x.redistribute(grid, Cuts<0>{0, 7, 9}, BlockCyclic<1>(4));
    CHECK(same_array(there.to_local(),
                     owned_part(Placements<Cuts<0>, BlockCyclic<1, 4>>(Cuts<0>{0, 7, 9}, {}), 9, 6,
                                grid.state())));
    const Cuts<0> three{0, 2, 2, 9};
    const auto fewer = there.redistribute(some, three);
    if (some.is_member())
      CHECK(
          same_array(fewer.to_local(), owned_part(Placements<Cuts<0>>(three), 9, 6, some.state())));
    CHECK(same_array(fewer.redistribute(line, columns).to_local(), a.to_local()));
    const auto measured = from_local(fewer.to_local(), some, Cuts<0>{});
    CHECK(same_array(measured.redistribute(line, rows).to_local(), x.to_local()));
  });
}

TEST_CASE("a picture and the text of placements show the cut points") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {3});
    const auto x = zeros<float>({8, 4}, mesh, Cuts<0>{0, 5, 5, 8});
    CHECK(visualize_sharding(x) ==
          "    | 0:4\n"
          "0:5 | 0\n"
          "5:8 | 2\n");
    CHECK(to_string(x.placements()) == "(Cuts(0, [0, 5, 5, 8]))");
    CHECK(to_string(zeros<float>({8}, mesh, BlockCyclic<0>(3)).placements()) ==
          "(BlockCyclic(0, 3))");
  });
}

TEST_CASE("cut points and blocks that do not fit are errors on every rank") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const auto says = [&](const auto& f, const char* text) {
      const std::string error = error_of(f);
      CHECK_MESSAGE(cleave::testing::contains(error, text), error);
    };
    says([&] { zeros<float>({4}, mesh, Cuts<0>{0, 1, 5}); },
         "Cuts(0, [0, 1, 5]) makes 2 parts of 5 indices; axis 0 has 2 ranks, the dimension has 4");
    says([&] { zeros<float>({4}, mesh, Cuts<0>{0, 4}); }, "makes 1 parts of 4 indices");
    says([&] { zeros<float>({4}, mesh, Cuts<0>{}); }, "Cuts<0> requires cut points");
    says([&] { zeros<float>({4}, mesh, BlockCyclic<0>{}); }, "requires a block of at least 1");
    says([&] { zeros<float>({4}, mesh, BlockCyclic<0>(-2)); }, "requires a block of at least 1");
    says([] { Cuts<0>{0, 3, 2}; }, "cut points are the begin of each rank's part");
    says([] { Cuts<0>{1, 2}; }, "these are [1, 2]");
    const auto x = zeros<float>({4}, mesh, Cuts<0>{0, 1, 4});
    says([&] { x.redistribute(Cuts<0>{0, 1, 2, 4}); }, "makes 3 parts of 4 indices");
    says([&] { distribute_tensor(x, mesh, Cuts<0>{0, 2, 4}); }, "is cut otherwise already");
    const Tensor<float, 1> two({2});
    says([&] { from_local(two, mesh, Cuts<0>{0, 1, 4}); },
         "the local tensors add up to [4], of which rank 0 owns [1], but it passed [2]");
    const index_t mine = world.rank() == 0 ? 1 : 2;
    says([&] { from_local(two, mesh, Cuts<0>{0, mine, 4}); }, "with cut points of checksum");
  });
}

TEST_CASE("ranks whose cut points differ are told so, and do not wait for each other") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const auto x = zeros<float>({4}, mesh, Cuts<0>{0, world.rank() == 0 ? 1 : 2, 4});
    const std::string error = error_of([&] { x.full_tensor(); });
    CHECK_MESSAGE(cleave::testing::contains(error, "checksum"), error);
  });
}

TEST_CASE("plans between cuts chosen at run time are explained, with their bytes") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const Placements from(Cuts<0>{0, 1, 6}), to(Cuts<0>{0, 4, 6});
    const Explanation plan = explain(mesh, {6, 3}, from, to, DType::float64);
    CHECK(plan.bytes == 3 * 3 * 8);  // rows 1, 2 and 3
    CHECK(explain(mesh, {6, 3}, from, Placements(Replicate{}), DType::float64).bytes == 5 * 3 * 8);
    CHECK(explain(mesh, {6, 3}, from, from).bytes == 0);
  });
}
