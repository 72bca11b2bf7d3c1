// Redistribution between all ways of cutting: every pair of layouts on one and two axes, compared
// with lists of indices that are cut by hand: values, elements received, and messages.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/run_plan.hpp>

#include "device.hpp"
#include "effort.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::elements_of;
using cleave::testing::placed;
using naive::Indices;
using naive::layouts_over;
using naive::shape_of;

namespace {

/// All placements that shard dimensions below `dims` on an axis of `parts` ranks, and Replicate.
std::vector<Placement> cuts(int dims, index_t parts, const std::vector<int>& blocks) {
  std::vector<Placement> all{Placement::replicate()};
  for (int d = 0; d < dims; ++d) {
    all.push_back(Placement::shard(d));
    all.push_back(Placement::balanced(d));
    for (const int block : blocks) all.push_back(Placement::block_cyclic(d, block));
    all.push_back(Placement::owned(int(parts) - 1, d));
    std::vector<index_t> points{0};  // parts of 3, 0, 2, 4, 1, 3, 0, .. indices, if there are any
    for (index_t part = 0; part < parts; ++part)
      points.push_back(points.back() + (3 + 2 * part) % 5);
    all.push_back(Placement::cuts(d, detail::number_of_points(points)));
  }
  return all;
}

/// The flat global indices of a rank's elements.
std::vector<index_t> flat(const Layout& layout, const Indices& shape, const Indices& mesh,
                          const Indices& at) {
  std::vector<index_t> result;
  for (const Indices& index : naive::elements(layout, shape, mesh, at)) {
    index_t number = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) number = number * shape[d] + index[d];
    result.push_back(number);
  }
  return result;
}

index_t lacking(const std::vector<index_t>& wanted, const std::vector<index_t>& had) {
  const std::set<index_t> there(had.begin(), had.end());
  return index_t(
      std::count_if(wanted.begin(), wanted.end(), [&](index_t i) { return !there.contains(i); }));
}

/// Counts what is wrong with the transfers of one plan: elements received beyond the lower bound,
/// several messages between two ranks, sends without a receive.
int wrong_transfers(const Layout& from, const Layout& to, const Indices& shape,
                    const Indices& mesh) {
  const Plan plan = make_plan(from, to, int(shape.size()));
  if (plan.count == 0) return 0;
  if (plan.count > 1) return 1000;
  const Step& step = plan[0];
  const Shape extents = shape_of(mesh), global = shape_of(shape);
  int wrong = 0;
  index_t most = 0;
  std::map<std::pair<index_t, index_t>, index_t> sent;
  const auto rank_of = [&](const Shape& at, int peer) {
    return linear_index(extents, member_at(extents, at, step.axes, peer));
  };
  for (const Indices& at : naive::all_indices(mesh)) {
    const index_t lacks = lacking(flat(to, shape, mesh, at), flat(from, shape, mesh, at));
    most = std::max(most, lacks);
    wrong += lacks !=
             redistribution::lacking_elements(step.from, step.to, global, extents, shape_of(at));
    if (step.kind != StepKind::exchange) continue;
    const auto lists = [&](const redistribution::Transfers& all) {
      index_t received = 0;
      for (const Transfer& t : all.receives) {
        const index_t peer = rank_of(shape_of(at), t.peer),
                      self = linear_index(extents, shape_of(at));
        if (peer != self) received += t.destination.volume();
        sent[{peer, self}] += t.destination.volume();
        for (const Transfer& other : all.receives) wrong += &t != &other && t.peer == other.peer;
      }
      for (const Transfer& t : all.sends) {
        sent[{linear_index(extents, shape_of(at)), rank_of(shape_of(at), t.peer)}] -=
            t.source.volume();
        for (const Transfer& other : all.sends) wrong += &t != &other && t.peer == other.peer;
      }
      wrong += received != lacks;
    };
    if (step.needs_runs()) lists(redistribution::plan_runs(step, global, extents, shape_of(at)));
    else lists(redistribution::exchange_transfers(step, global, extents, shape_of(at)));
  }
  for (const auto& [pair, elements] : sent) wrong += elements != 0;
  return wrong + (received_bytes(plan, extents, global, 1) != most);
}

/// Redistributes on communicating ranks. @return the number of this rank's wrong elements
template <class T>
int wrong_elements(const MeshState& mesh, const Layout& from, const Layout& to,
                   const Indices& shape, bool by_cost, bool transposed) {
  const Indices extents = naive::to_indices(mesh.extents());
  const Indices at = naive::to_indices(mesh.coordinate());
  Shape local = shape_of(shape);
  for (int d = 0; d < local.dims; ++d)
    local[d] = index_t(naive::owned(from, d, shape, extents, at).size());
  std::vector<T> held;
  for (const Indices& index : naive::elements(from, shape, extents, at))
    held.push_back(naive::from_int<T>(naive::addend(index, naive::partial_coordinate(from, at))));
  redistribution::Block block = placed(held, local);
  if (transposed) {  // the same elements, stored column by column
    Shape turned = local;
    std::reverse(turned.values.begin(), turned.values.begin() + turned.dims);
    redistribution::Block other = redistribution::allocate<TestDevice>(block.view.dtype, turned);
    std::reverse(other.view.extents.values.begin(),
                 other.view.extents.values.begin() + turned.dims);
    std::reverse(other.view.strides.values.begin(),
                 other.view.strides.values.begin() + turned.dims);
    strided_copy(TestDevice{}, block.view, other.view);
    block = other;
  }
  const Plan plan = make_plan(from, to, local.dims);
  const redistribution::Block result = redistribution::run<TestDevice>(
      by_cost ? nullptr : &plan, from, to, block, {mesh, shape_of(shape), "redistribute"});
  const auto wanted = naive::elements(to, shape, extents, at);
  Shape after = shape_of(shape);
  for (int d = 0; d < after.dims; ++d)
    after[d] = index_t(naive::owned(to, d, shape, extents, at).size());
  if (!(result.view.extents == after)) return 1 << 20;
  redistribution::Block dense = redistribution::allocate<TestDevice>(dtype_of<T>(), after);
  strided_copy(TestDevice{}, result.view, dense.view);
  const std::vector<T> got = elements_of<T>(dense);
  int wrong = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wrong += got[i] != naive::value<T>(from, extents, wanted[i]);
  return wrong;
}

template <class T>
void check_values(const MeshState& mesh, const Indices& shape, const std::vector<Layout>& from,
                  const std::vector<Layout>& to, std::size_t stride = 1) {
  std::size_t turn = 0;
  for (const Layout& source : from)
    for (const Layout& target : to) {
      if (turn++ % stride != 0) continue;
      const int wrong =
          wrong_elements<T>(mesh, source, target, shape, turn % 3 == 0, turn % 2 == 0);
      CHECK_MESSAGE(wrong == 0, wrong, " wrong elements: ", to_string(source), " -> ",
                    to_string(target), " of ", to_string(shape_of(shape)), " on ", mesh.describe(),
                    ", rank ", mesh.world_rank());
    }
}

}  // namespace

TEST_CASE("ownership of one dimension by any cuts is that of lists cut by hand") {
  int places = 0;
  for (const Indices& mesh : std::vector<Indices>{{1}, {2}, {3}, {7}, {2, 3}, {3, 2}})
    for (index_t n = 0; n <= 22; ++n) {
      std::vector<Layout> all;
      if (mesh.size() == 1) all = layouts_over(1, cuts(1, mesh[0], {1, 2, 3, 4, 5}));
      else
        for (const Placement& outer : cuts(1, mesh[0], {1, 3}))
          for (const Placement& inner : cuts(1, mesh[1], {1, 2})) {
            Layout both = Layout::replicated(2);
            both[0] = outer, both[1] = inner;
            all.push_back(both);
          }
      for (const Layout& layout : all) {
        const DimOwnership own(layout, StepLayout{}.order, 0, n, shape_of(mesh));
        std::vector<bool> seen(std::size_t(n), false);
        for (const Indices& at : naive::all_indices(mesh)) {
          const Indices expected = naive::owned(layout, 0, {n}, mesh, at);
          const auto parts = own.parts_of(shape_of(at));
          REQUIRE(own.size(parts) == index_t(expected.size()));
          REQUIRE(local_shape(layout, shape_of({n}), shape_of(mesh), shape_of(at))[0] ==
                  index_t(expected.size()));
          for (std::size_t i = 0; i < expected.size(); ++i) {
            REQUIRE(own.global(parts, index_t(i)) == expected[i]);
            const auto place = own.place(expected[i]);
            REQUIRE(place.parts == parts);
            REQUIRE(place.local == index_t(i));
            REQUIRE(place.run >= 1);
            for (std::size_t j = 1; j < std::size_t(place.run); ++j)
              REQUIRE(expected[i + j] == expected[i] + index_t(j));
            seen[std::size_t(expected[i])] = true;
            ++places;
          }
        }
        REQUIRE(std::all_of(seen.begin(), seen.end(), [](bool b) { return b; }));
      }
    }
  CHECK(places > 10000);
}

TEST_CASE("between any two cuts, ranks receive what they lack once, in one message per peer") {
  int cases = 0;
  const auto check = [&](const Layout& from, const Layout& to, const Indices& shape,
                         const Indices& mesh) {
    const int wrong = wrong_transfers(from, to, shape, mesh);
    CHECK_MESSAGE(wrong == 0, to_string(from), " -> ", to_string(to), " of ",
                  to_string(shape_of(shape)), " on ", to_string(shape_of(mesh)));
    ++cases;
  };
  for (const index_t ranks : {1, 3, 8})
    for (const index_t n : {0, 1, 2, 7, 20})
      for (const Layout& from : layouts_over(1, cuts(1, ranks, {1, 2, 3, 4, 5})))
        for (const Layout& to : layouts_over(1, cuts(1, ranks, {1, 2, 3, 4, 5})))
          check(from, to, {n}, {ranks});
  std::size_t turn = 0;
  for (const Indices& mesh : std::vector<Indices>{{2, 2}, {3, 2}, {2, 3}, {1, 4}})
    for (const Indices& shape : std::vector<Indices>{{13}, {7, 5}, {3, 2, 4}}) {
      const auto all = layouts_over(2, cuts(int(shape.size()), 2, {1, 2, 3}));
      for (const Layout& from : all)
        for (const Layout& to : all)
          if (turn++ % (shape.size() == 1   ? 23
                        : shape.size() == 2 ? 257
                                            : 1549) ==
                  0 &&
              (mesh[0] > 1 ||
               (from[0].kind != PlacementKind::owned && to[0].kind != PlacementKind::owned)))
            check(from, to, shape, mesh);
    }
  CHECK(cases > 1500);
}

TEST_CASE("redistribution between any two cuts on one axis gives every rank its values") {
  on_ranks({1, 2, 3, 4, 7, 8}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()}, TestDevice{});
    const auto all = layouts_over(1, cuts(1, world.size(), {1, 2, 5}));
    for (const Indices& shape : std::vector<Indices>{{0}, {3}, {17}})
      check_values<double>(mesh.state(), shape, all, all);
    check_values<std::int64_t>(mesh.state(), {5, 9}, layouts_over(1, cuts(2, world.size(), {1, 3})),
                               all, 2);
  });
}

TEST_CASE("redistribution between any two cuts on two axes gives every rank its values") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh =
        init_device_mesh<axes::dp, axes::tp>(world, {2, world.size() / 2}, TestDevice{});
    const std::size_t stride = cleave::testing::briefly ? 409 : 103;
    for (const Indices& shape : std::vector<Indices>{{11, 6}, {2, 5}}) {
      const auto all = layouts_over(2, cuts(2, 2, {1, 2}));
      check_values<double>(mesh.state(), shape, all, all, stride);
    }
    const auto three = layouts_over(2, cuts(3, 2, {2}));
    check_values<float>(mesh.state(), {3, 5, 4}, three, three, 4 * stride + 1);
  });
}

TEST_CASE("partial values are reduced to any cuts") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<axes::tp>(world, {world.size()}, TestDevice{});
    const std::vector<Placement> partial{Placement::partial(ReduceOp::sum),
                                         Placement::partial(ReduceOp::max)};
    for (const Indices& shape : std::vector<Indices>{{0}, {11}, {2, 7}})
      check_values<double>(line.state(), shape, layouts_over(1, partial),
                           layouts_over(1, cuts(int(shape.size()), world.size(), {1, 2, 3})));
    if (world.size() != 4) return;
    const auto grid = init_device_mesh<axes::dp, axes::tp>(world, {2, 2}, TestDevice{});
    auto some = partial;
    for (const Placement& p : cuts(2, 2, {2})) some.push_back(p);
    const auto to = layouts_over(2, cuts(2, 2, {1, 2}));
    check_values<double>(grid.state(), {7, 5}, layouts_over(2, some), to,
                         cleave::testing::briefly ? 151 : 37);
  });
}
