// Every source and target placement on every mesh, executed by communicating ranks; values are
// compared with reductions and ownership computed by hand.
#include <array>
#include <complex>
#include <cstdint>
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

namespace {

std::vector<Placement> sources(int dims, bool ordered) {
  std::vector<Placement> all{Placement::replicate(), Placement::partial(ReduceOp::sum),
                             Placement::partial(ReduceOp::product)};
  if (ordered) {
    all.push_back(Placement::partial(ReduceOp::avg));
    all.push_back(Placement::partial(ReduceOp::max));
    all.push_back(Placement::partial(ReduceOp::min));
  }
  for (int d = 0; d < dims; ++d) all.push_back(Placement::shard(d));
  return all;
}

std::vector<Placement> targets(int dims) {
  std::vector<Placement> all{Placement::replicate()};
  for (int d = 0; d < dims; ++d) all.push_back(Placement::shard(d));
  return all;
}

template <class T>
bool close(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) return a == b;
  else return std::abs(a - b) <= 1e-5 * (1 + std::abs(b));
}

/// Redistributes with the plan determined by the layouts alone.
redistribution::Block fixed(const Layout& from, const Layout& to,
                            const redistribution::Block& block,
                            const redistribution::Context& context) {
  const Plan plan = make_plan(from, to, context.shape.dims);
  return redistribution::run<TestDevice>(&plan, from, to, block, context);
}

/// Tests one source and target, with the plan of the layouts or the cheapest plan. @return the
/// number of this rank's wrong elements
template <class T>
int wrong_elements(const MeshState& mesh, const Layout& from, const Layout& to,
                   const Indices& shape, bool by_cost) {
  Shape global;
  for (const index_t extent : shape) global[global.dims++] = extent;
  const Indices extents = naive::to_indices(mesh.extents());
  const Indices at = naive::to_indices(mesh.coordinate());
  const auto mine = naive::elements(from, shape, extents, at);

  Shape local = global;
  for (int d = 0; d < global.dims; ++d)
    local[d] = index_t(naive::owned(from, d, shape, extents, at).size());
  const Indices where = naive::partial_coordinate(from, at);
  std::vector<T> held;
  for (const Indices& index : mine) held.push_back(naive::from_int<T>(naive::addend(index, where)));
  const redistribution::Block block = placed(held, local);

  const redistribution::Context context{mesh, global, "redistribute"};
  const redistribution::Block result =
      by_cost ? redistribution::run<TestDevice>(nullptr, from, to, block, context)
              : fixed(from, to, block, context);
  const auto wanted = naive::elements(to, shape, extents, at);
  if (result.view.size() != index_t(wanted.size()) || !result.view.contiguous()) return 1 << 20;
  int wrong = 0;
  const std::vector<T> got = elements_of<T>(result);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wrong += !close(got[i], naive::value<T>(from, extents, wanted[i]));
  wrong += elements_of<T>(block) != held;  // the source is unchanged
  return wrong;
}

template <class T>
void check_all_pairs(const MeshState& mesh, bool ordered, const std::vector<Indices>& shapes,
                     std::vector<Placement> alphabet = {}) {
  for (const Indices& shape : shapes) {
    const int axes = mesh.extents().dims;
    const int dims = int(shape.size());
    const auto from_alphabet = alphabet.empty() ? sources(dims, ordered) : alphabet;
    for (const Layout& from : layouts_over(axes, from_alphabet))
      for (const Layout& to : layouts_over(axes, targets(dims))) {
        const int wrong = wrong_elements<T>(mesh, from, to, shape, false) +
                          wrong_elements<T>(mesh, from, to, shape, true);
        CHECK_MESSAGE(wrong == 0, wrong, " wrong elements of ", name_of(dtype_of<T>()), " ",
                      to_string(from), " -> ", to_string(to), " on ", mesh.describe(), ", rank ",
                      mesh.world_rank());
      }
  }
}

void check_all_types(const MeshState& mesh, const std::vector<Indices>& shapes) {
  check_all_pairs<float>(mesh, true, shapes);
  if (cleave::testing::briefly) return;
  check_all_pairs<double>(mesh, true, shapes);
  check_all_pairs<std::int64_t>(mesh, false, shapes);
  check_all_pairs<std::complex<double>>(mesh, false, shapes);
}

}  // namespace

TEST_CASE("every redistribution on one axis gives every rank the values that it owns") {
  on_ranks({1, 2, 3, 4, 5, 7, 8}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()}, TestDevice{});
    const std::vector<Indices> shapes{{5}, {0}, {8, 3}, {3, 5}, {2, 7, 3}};
    check_all_types(mesh.state(), shapes);
  });
}

TEST_CASE("every redistribution on 1 x n gives every rank the values that it owns") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {1, world.size()}, TestDevice{});
    check_all_types(mesh.state(), {{5, 4}, {2, 0}});
  });
}

TEST_CASE("every redistribution on 2 x 2 gives every rank the values that it owns") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {2, 2}, TestDevice{});
    const std::vector<Indices> shapes{{5, 6}, {1, 3}, {7}, {3, 0}};
    check_all_types(mesh.state(), shapes);
  });
}

TEST_CASE("every redistribution on 2 x 3 gives every rank the values that it owns") {
  on_ranks({6}, [](World& world) {
    const auto mesh = init_device_mesh<axes::dp, axes::tp>(world, {2, 3}, TestDevice{});
    check_all_types(mesh.state(), {{7, 5}, {4, 2}, {2, 3, 5}});
  });
}

TEST_CASE("every redistribution on 2 x 2 x 2 gives every rank the values that it owns") {
  on_ranks({8}, [](World& world) {
    const auto mesh =
        init_device_mesh<axes::dp, axes::tp, axes::cp>(world, {2, 2, 2}, TestDevice{});
    const std::vector<Placement> some{Placement::replicate(), Placement::partial(ReduceOp::sum),
                                      Placement::partial(ReduceOp::product), Placement::shard(0),
                                      Placement::shard(1)};
    if (cleave::testing::briefly || !cleave::testing::thorough())
      return check_all_pairs<std::int64_t>(mesh.state(), false, {{3, 2}}, some);
    check_all_pairs<float>(mesh.state(), true, {{9, 5}});
    check_all_pairs<double>(mesh.state(), true, {{3, 2}}, some);
    check_all_pairs<std::int64_t>(mesh.state(), false, {{3, 2}, {9, 5}}, some);
    check_all_pairs<std::complex<double>>(mesh.state(), false, {{5, 0}, {4, 7}}, some);
  });
}

TEST_CASE("a value made partial is the same value") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh =
        init_device_mesh<axes::dp, axes::tp>(world, {2, world.size() / 2}, TestDevice{});
    const Indices extents = naive::to_indices(mesh.extents());
    const Indices at = naive::to_indices(mesh.coordinate());
    const Indices shape{5, 4};
    const Shape global(std::array<index_t, 2>{5, 4});
    for (const Layout& from : layouts_over(2, targets(2)))
      for (const Layout& middle : layouts_over(2, sources(2, true)))
        if (middle.has_partial()) {
          const auto mine = naive::elements(from, shape, extents, at);
          std::vector<double> held;
          for (const Indices& index : mine) held.push_back(naive::addend(index, {}));
          const Shape local(
              std::array<index_t, 2>{index_t(naive::owned(from, 0, shape, extents, at).size()),
                                     index_t(naive::owned(from, 1, shape, extents, at).size())});
          redistribution::Block block = placed(held, local);
          const redistribution::Context context{mesh.state(), global, "redistribute"};
          block = fixed(from, middle, block, context);
          Layout whole;
          whole.axes = 2;
          block = fixed(middle, whole, block, context);
          int wrong = 0;
          const std::vector<double> got = elements_of<double>(block);
          for (index_t i = 0; i < 20; ++i)
            wrong += !close(got[std::size_t(i)], double(naive::addend({i / 4, i % 4}, {})));
          CHECK_MESSAGE(wrong == 0, to_string(from), " -> ", to_string(middle));
        }
  });
}
