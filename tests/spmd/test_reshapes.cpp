// reshape in programs keeps the shards that can be kept.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/frozen.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/then.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace reshapes {
namespace {

/// The number at a place of all elements in row-major order.
double number_at(index_t place) { return double(place * place % 97) - 0.25; }

/// This rank's part of an array of such numbers, and its places in row-major order.
std::vector<double> part_of(const Layout& layout, const Shape& shape, const MeshState& mesh) {
  const Box own = owned_box(layout, shape, mesh.extents(), mesh.coordinate());
  const Shape extents = own.extents();
  std::vector<double> part;
  for (index_t i = 0; i < extents.product(); ++i) {
    index_t rest = i, place = 0, step = 1;
    for (int d = shape.dims - 1; d >= 0; --d) {
      place += (own.begin[d] + rest % extents[d]) * step;
      rest /= extents[d];
      step *= shape[d];
    }
    part.push_back(number_at(place));
  }
  return part;
}

/// Reshapes an array under a layout in a program, and compares each rank's elements with numbers
/// computed from their indices, and the communication with what was counted.
template <std::size_t From, std::size_t To, class Mesh>
void check_reshape(const Mesh& mesh, const Layout& layout, const index_t (&from)[From],
                   const index_t (&to)[To]) {
  const spmd::Graph graph =
      spmd::trace([&](const auto& x) { return reshape(x, to); }, spmd::arg<double>("x", from));
  const Shape shape(std::to_array(from));
  std::vector<double> own = part_of(layout, shape, mesh.state());
  const Shape extents = local_shape(layout, shape, mesh.extents(), mesh.coordinate());
  const std::shared_ptr<void> storage(std::shared_ptr<void>{}, own.data());
  const std::vector<spmd::ErasedTensor> inputs{
      {storage, View::dense(own.data(), DType::float64, extents), shape, layout}};
  for (const Shape& known : {Shape{}, mesh.extents()}) {
    const spmd::Program program = spmd::expand(graph, std::array{layout}, {.mesh = known});
    INFO(to_string(program, mesh));
    REQUIRE(!program.fault);
    spmd::Runner runner(program, mesh);
    const CommTrace trace(mesh.communicator());
    const auto outputs = runner(inputs);
    CHECK(trace.count() == communications(program, mesh.extents()));
    const spmd::ErasedTensor& y = outputs.at(0);
    const std::vector<double> expected = part_of(y.layout, Shape(std::to_array(to)), mesh.state());
    REQUIRE(y.local.contiguous());
    REQUIRE(std::size_t(y.local.size()) == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(static_cast<const double*>(y.local.data)[i] == expected[i]);
  }
}

/// The same under all placements without partials.
template <std::size_t From, std::size_t To, class Mesh>
void check_all(const Mesh& mesh, const index_t (&from)[From], const index_t (&to)[To]) {
  const int axes = mesh.extents().dims, choices = int(From) + 1;
  for (int n = 0; n < (axes == 1 ? choices : choices * choices); ++n) {
    Layout layout = Layout::replicated(axes);
    for (int a = 0, rest = n; a < axes; ++a, rest /= choices)
      if (rest % choices > 0) layout[a] = Placement::shard(rest % choices - 1);
    check_reshape(mesh, layout, from, to);
  }
}

template <class Mesh>
void check_shapes(const Mesh& mesh) {
  check_all(mesh, {6, 4, 5}, {6, 20});
  check_all(mesh, {6, 4, 5}, {24, 5});
  check_all(mesh, {5, 3, 4}, {15, 4});
  check_all(mesh, {5, 3, 4}, {60});
  check_all(mesh, {6, 20}, {6, 4, 5});
  check_all(mesh, {6, 12}, {2, 3, 12});
  check_all(mesh, {6, 4, 5}, {4, 6, 5});
  check_all(mesh, {2, 3, 7}, {1, 6, 1, 7});
  check_all(mesh, {1, 6, 1}, {6});
  check_all(mesh, {7}, {1, 7});
  check_all(mesh, {4, 5, 2, 3}, {20, 6});
  check_all(mesh, {2, 3, 5, 4}, {6, 5, 2, 2});
  check_all(mesh, {2, 3, 4}, {6, 4, 1});
  check_all(mesh, {0, 3}, {3, 0, 2});
}

constexpr Placement R = Placement::replicate();
constexpr Placement S0 = Placement::shard(0);
constexpr Placement S1 = Placement::shard(1);
constexpr Placement S2 = Placement::shard(2);

template <std::size_t Axes>
constexpr Layout layout_of(const Placement (&placements)[Axes]) {
  Layout layout;
  for (const Placement& p : placements) layout[layout.axes++] = p;
  return layout;
}

/// The placements of the result, if nothing is communicated.
template <std::size_t From, std::size_t To, std::size_t Axes>
constexpr Layout kept(const index_t (&from)[From], const Placement (&placements)[Axes],
                      const index_t (&to)[To], const Shape& mesh = {}) {
  const spmd::Graph graph =
      spmd::trace([&](const auto& x) { return reshape(x, to); }, spmd::arg<float>("x", from));
  const spmd::Program program =
      spmd::expand(graph, std::array{layout_of(placements)}, {.mesh = mesh});
  const int count =
      mesh.dims > 0 ? spmd::communications(program, mesh) : spmd::communications(program);
  return count == 0 ? spmd::output_schemas(program)[0] : Layout{};
}

constexpr Shape four(std::array<index_t, 1>{4});
constexpr Shape two_by_four(std::array<index_t, 2>{2, 4});
static_assert(kept({6, 4, 5}, {S0}, {6, 20}) == layout_of({S0}));
static_assert(kept({6, 4, 5}, {S1}, {6, 20}) == layout_of({S1}));
static_assert(kept({6, 4, 5}, {S2}, {24, 5}) == layout_of({S1}));
static_assert(kept({6, 4, 5}, {S1, S0}, {6, 20}) == layout_of({S1, S0}));
static_assert(kept({6, 20}, {S1}, {6, 4, 5}) == layout_of({S1}));
static_assert(kept({12}, {S0}, {1, 12}) == layout_of({S1}));
static_assert(kept({2, 3, 5, 4}, {S2}, {6, 5, 2, 2}) == layout_of({S1}));
static_assert(kept({4, 5, 8, 3}, {S0, S2}, {20, 24}, two_by_four) == layout_of({S0, S1}));
static_assert(kept({6, 4, 5}, {S1}, {6, 20}, four) == layout_of({S1}));
static_assert(kept({6, 2, 5}, {S1}, {6, 10}, four) == Layout{});  // 2 of 4 ranks have 10: exchanged
static_assert(kept({6, 4, 5}, {S2}, {6, 20}, four) == Layout{});  // not the first of those merged

}  // namespace

TEST_CASE("a program's reshape has the elements of the array, wherever shards end") {
  on_ranks({1, 2, 3, 4, 5},
           [](World& world) { check_shapes(init_device_mesh<dp>(world, {world.size()})); });
}

TEST_CASE("a program's reshape on two axes, nested shards among them") {
  on_ranks({4, 6}, [](World& world) {
    check_shapes(init_device_mesh<dp, tp>(world, {2, world.size() / 2}));
  });
}

}  // namespace reshapes
