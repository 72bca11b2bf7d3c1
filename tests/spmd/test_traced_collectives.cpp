// Functional collectives as nodes of a graph.
#include <array>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/optimize.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/trace_function.hpp>
#include <cleave/spmd/traced_collectives.hpp>

#include "device.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// Every collective, on the second axis of a mesh.
struct AllCollectives {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto along = spmd::mesh_axis(1);
    const auto product = matmul(x, w);  // x[S0, S1] w[R, S0]: Partial on the second axis
    const auto rows = functional::reduce_scatter(product, Sum{}, 0, along);
    const auto columns = functional::all_to_all(rows, 1, 0, along);
    return std::tuple(functional::all_reduce(product, Sum{}, along), rows, columns,
                      functional::all_gather(columns, -1, along));
  }
};
constexpr auto collective_graph = frozen(
    [] { return trace(AllCollectives{}, arg<double>("x", {6, 5}), arg<double>("w", {5, 7})); });
constexpr std::array collective_schemas{schema(S0{}, S1{}), schema(R{}, S0{})};
constexpr unsigned second_axis = 2;
static_assert(count(expand(collective_graph, collective_schemas), StepKind::all_reduce,
                    second_axis) == 1);
static_assert(communications(expand(collective_graph, collective_schemas)) == 4);

/// Two sums: nodes that passes merge and move.
struct TwoSums {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto a = functional::all_reduce(matmul(x, w), Sum{}, spmd::mesh_axis(0));
    const auto b = functional::all_reduce(matmul(x, mul(w, 2.0)), Sum{}, spmd::mesh_axis(0));
    const auto c = functional::all_reduce(matmul(mul(x, 3.0), w), Sum{}, spmd::mesh_axis(0));
    return std::tuple(a, b, redistribute(c, S0{}));
  }
};
constexpr auto sums_graph =
    frozen([] { return trace(TwoSums{}, arg<double>("x", {6, 8}), arg<double>("w", {8, 4})); });
constexpr std::array sums_schemas{schema(S1{}), schema(S0{})};
constexpr Program optimized_sums() {
  return optimize(expand(sums_graph, sums_schemas), std::array<index_t, 1>{2});
}
static_assert(communications(expand(sums_graph, sums_schemas)) == 3);
static_assert(rounds(optimized_sums(), StepKind::all_reduce) == 1);
static_assert(rounds(optimized_sums(), StepKind::reduce_scatter) == 1);

template <class F, class... Schemas>
Fault fault_of_collective(const F& f, const Schemas&... schemas) {
  return expand(trace(f, arg<float>("x", {4, 6})), std::array{schemas...}).fault;
}

}  // namespace

TEST_CASE("functional collectives of traced values redistribute along one axis") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    const auto part = [&](const Layout& layout, std::array<index_t, 2> shape, double scale) {
      const Box box = owned_box(layout, Shape(shape), mesh.extents(), mesh.coordinate());
      const Tensor<double, 2> own({box.extent(0), box.extent(1)});
      for (index_t i = 0; i < own.extent(0); ++i)
        for (index_t j = 0; j < own.extent(1); ++j)
          own(i, j) = scale * double(box.begin[0] + i) + double(box.begin[1] + j) + 1;
      return ErasedTensor{own.storage(), own.view(), Shape(shape), layout};
    };
    const std::vector inputs{part(collective_schemas[0], {6, 5}, 2),
                             part(collective_schemas[1], {5, 7}, 3)};
    const Program program = expand(collective_graph, collective_schemas);
    Runner plain(program, mesh), better(optimize(program, mesh), mesh);
    const std::array expected{schema(S0{}, R{}), schema(S0{}, S0{}), schema(S0{}, S1{}),
                              schema(S0{}, R{})};
    for (Runner<Host>* runner : {&plain, &better}) {
      const auto outputs = (*runner)(inputs);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        const ErasedTensor& y = outputs[k];
        CHECK(y.layout == expected[k]);
        const Box box = owned_box(y.layout, y.shape, mesh.extents(), mesh.coordinate());
        REQUIRE(y.local.extents == box.extents());
        for (index_t i = 0; i < box.extent(0); ++i)
          for (index_t j = 0; j < box.extent(1); ++j) {
            double sum = 0;
            for (index_t c = 0; c < 5; ++c)
              sum += (2 * double(box.begin[0] + i) + double(c) + 1) *
                     (3 * double(c) + double(box.begin[1] + j) + 1);
            const index_t at = i * y.local.strides[0] + j * y.local.strides[1];
            CHECK(static_cast<const double*>(y.local.data)[at] == sum);
          }
      }
    }
  });
}

TEST_CASE("a collective of a value that is placed otherwise is a fault of its node") {
  const auto sum_of = [](const auto& x) {
    return functional::all_reduce(x, Sum{}, spmd::mesh_axis(0));
  };
  const auto all = [](const auto& x) { return functional::all_gather(x, 1, spmd::mesh_axis(0)); };
  CHECK(fault_of_collective(sum_of, schema(Partial<Sum>{})).kind == FaultKind::none);
  for (const Layout& layout : {schema(R{}), schema(S0{}), schema(Partial<Max>{})})
    CHECK(fault_of_collective(sum_of, layout).kind == FaultKind::collective_taken);
  CHECK(fault_of_collective(all, schema(S1{})).kind == FaultKind::none);
  CHECK(fault_of_collective(all, schema(S0{})).kind == FaultKind::collective_taken);
  const Fault far = fault_of_collective(
      [](const auto& x) { return functional::all_gather(x, 0, spmd::mesh_axis(1)); }, schema(S0{}));
  CHECK(to_string(far) == "node 0 (functional::all_gather): the mesh does not have that axis");
  CHECK_THROWS_WITH_AS(
      trace([](const auto& x) { return functional::all_gather(x, 2, spmd::mesh_axis(0)); },
            arg<float>("x", {4, 6})),
      doctest::Contains("functional::all_gather: dimension 2 of 2 does not exist"), Error);
  CHECK_THROWS_WITH_AS(spmd::mesh_axis(8), doctest::Contains("a mesh has axes 0 to 7, not 8"),
                       Error);
}
