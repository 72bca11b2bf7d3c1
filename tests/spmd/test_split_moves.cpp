// Moves as steps: as many, as many bytes, and the same values as in the global array.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "device.hpp"
#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;
using Sums = Partial<Sum>;

constexpr index_t split_extents[] = {7, 5};

constexpr Shape split_shape(std::array<index_t, 2>{7, 5});

/// Element g of the global array is g; of a Partial, the rank at coordinate c adds g + 100 c.
double addend(const Layout& layout, const Shape& at, index_t g) {
  index_t c = 0;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].is_partial()) c += at[a] * (a + 1);
  return double(g + 100 * c);
}
double element(const Layout& layout, const Shape& mesh, index_t g) {
  double sum = 0;
  Shape at = Shape::filled(mesh.dims, 0);
  do {
    bool counts = true;
    for (int a = 0; a < mesh.dims; ++a) counts = counts && (layout[a].is_partial() || at[a] == 0);
    if (counts) sum += addend(layout, at, g);
  } while (next_index(mesh, at));
  return sum;
}

ErasedTensor numbered_part(const Layout& layout, const MeshState& mesh) {
  const Box box = owned_box(layout, split_shape, mesh.extents(), mesh.coordinate());
  const Tensor<double, 2> part({box.extent(0), box.extent(1)});
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j)
      part(i, j) = addend(layout, mesh.coordinate(),
                          (box.begin[0] + i) * split_extents[1] + box.begin[1] + j);
  const auto own = part.to(TestDevice{});
  return {own.storage(), own.view(), split_shape, layout};
}

void check_elements(const ErasedTensor& y, const Layout& from, const MeshState& mesh) {
  const Box box = owned_box(y.layout, y.shape, mesh.extents(), mesh.coordinate());
  REQUIRE(y.local.extents == box.extents());
  const auto part = cleave::detail::TensorAccess::make<Tensor<double, 2, TestDevice>>(
                        std::shared_ptr<void>(y.storage), y.local.data, y.local.extents.begin(),
                        y.local.strides.begin())
                        .clone()
                        .to(Host{});
  int wrong = 0;
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j)
      wrong += part(i, j) != element(from, mesh.extents(),
                                     (box.begin[0] + i) * split_extents[1] + box.begin[1] + j);
  CHECK(wrong == 0);
}

/// All pairs of these placements on two axes, in one program: every input is moved to all targets.
template <class Mesh>
void check_all_pairs(const Mesh& mesh) {
  std::vector<Layout> sources, targets;
  each_placements<2, R, S0, S1, Sums>([&](auto p) {
    const Layout layout = layout_of<decltype(p), 2>;
    sources.push_back(layout);
    if (!layout.has_partial()) targets.push_back(layout);
  });
  for (const Layout& from : sources) {
    Graph graph = trace([](const auto& x) { return redistribute(x, R{}, R{}); },
                        arg<double, TestDevice>("x", split_extents));
    Node node = graph.nodes[0];
    const Value moved = graph.values[std::size_t(node.first)];
    graph.outputs.clear();
    graph.nodes.clear();
    graph.values.resize(1);
    for (const Layout& to : targets) {
      node.asked = to;
      node.first = int(graph.values.size());
      Value value = moved;
      value.node = int(graph.nodes.size());
      graph.outputs.push_back({graph.add(value)});
      graph.nodes.push_back(node);
    }
    const Program program = expand(graph, std::array{from});
    const Shape& extents = mesh.extents();
    const Program split = split_moves(program, extents);
    for (const Instruction& i : split.code) CHECK(i.kind != InstructionKind::move);
    CHECK(communications(split) == communications(program, extents));
    CHECK(communications(split, extents) == communications(split));
    CHECK(received_bytes(split, extents) == received_bytes(program, extents));
    for (const StepKind kind : {StepKind::all_reduce, StepKind::reduce_scatter, StepKind::exchange})
      CHECK(count(split, kind, 0b01) == count(program, kind, 0b01, extents));
    Runner runner(split, mesh);
    const std::vector inputs{numbered_part(from, mesh.state())};
    const auto outputs = runner(inputs);
    for (const ErasedTensor& y : outputs) check_elements(y, from, mesh.state());
    check_elements(numbered_part(from.with_partials_as(Placement::replicate()), mesh.state()),
                   Layout::replicated(2), mesh.state());
  }
}

}  // namespace

TEST_CASE("moves run as the steps of their plans, on uneven and nested shards") {
  on_ranks({4, 6}, [](World& world) {
    check_all_pairs(init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{}));
    check_all_pairs(init_device_mesh<dp, tp>(world, {1, world.size()}, TestDevice{}));
  });
}

TEST_CASE("a program of steps runs on meshes of its extents only, and prints its steps") {
  const Graph graph = trace([](const auto& x) { return redistribute(x, R{}, R{}); },
                            arg<double>("x", split_extents));
  const Program split =
      split_moves(expand(graph, std::array{schema(Sums{}, S0{})}), std::array<index_t, 2>{2, 2});
  on_ranks({4}, [&](World& world) {
    const auto square = init_device_mesh<dp, tp>(world, {2, 2});
    const auto line = init_device_mesh<dp, tp>(world, {1, 4});
    CHECK_NOTHROW(Runner<Host>(split, square));
    CHECK_THROWS_WITH_AS(Runner<Host>(split, line),
                         doctest::Contains("was expanded for a mesh of extents [2, 2], not [1, 4]"),
                         Error);
    CHECK(to_string(split, square).find("all_gather over ") != std::string::npos);
  });
}
