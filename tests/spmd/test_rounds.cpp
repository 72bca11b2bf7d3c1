// Collectives that are merged, started early and waited for late: order, counts, bytes and values.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/coalesce.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/passes/start_early.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "random_programs.hpp"
#include "ranks.hpp"
#include "valid_program.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// A slow machine: even small programs have something to hide, and transfers take long.
constexpr ProgramCosts slow{.communication = {50, 1}, .points_per_us = 0.5};

int started(const Program& program) {
  int count = 0;
  for (const Instruction& i : program.code) count += i.kind == InstructionKind::wait;
  return count;
}

/// Three layers of products, as in data parallelism: gradients are sums over the rows of all ranks.
struct Gradients {
  constexpr auto operator()(const auto& x, const auto& w1, const auto& w2, const auto& w3) const {
    const auto a = matmul(x, w1), b = matmul(a, w2), y = matmul(b, w3);
    const auto dw3 = matmul(transpose(b), y), db = matmul(y, transpose(w3));
    const auto dw2 = matmul(transpose(a), db), da = matmul(db, transpose(w2));
    const auto dw1 = matmul(transpose(x), da);
    return std::tuple(sub(w1, resolve(dw1)), sub(w2, resolve(dw2)), sub(w3, resolve(dw3)));
  }
};
constexpr auto gradient_graph = frozen([] {
  return trace(Gradients{}, arg<float>("x", {16, 8}), arg<float>("w1", {8, 8}),
               arg<float>("w2", {8, 8}), arg<float>("w3", {8, 8}));
});
constexpr std::array gradient_by_data{schema(S0{}), schema(R{}), schema(R{}), schema(R{})};
constexpr Shape two_ranks(std::array<index_t, 1>{2});

/// A pair of layers of tensor parallelism, forward and backward.
struct ParallelLayers {
  constexpr auto operator()(const auto& x, const auto& up, const auto& down) const {
    const auto hidden = relu(matmul(x, up));
    const auto y = resolve(matmul(hidden, down));
    const auto dy = mul(y, 2.0f), dhidden = mul(matmul(dy, transpose(down)), hidden);
    return std::tuple(resolve(matmul(dhidden, transpose(up))), matmul(transpose(x), dhidden),
                      matmul(transpose(hidden), dy));
  }
};
constexpr auto layers_graph = frozen([] {
  return trace(ParallelLayers{}, arg<float>("x", {16, 8}), arg<float>("up", {8, 32}),
               arg<float>("down", {32, 8}));
});
constexpr Program tensor_parallel_step() {
  const std::array schemas{schema(R{}), schema(S1{}), schema(S0{})};
  return start_early(coalesce(split_moves(expand(layers_graph, schemas), two_ranks), two_ranks),
                     two_ranks);
}
// Tensor parallelism: one sum forward and one backward, which nothing merges.
static_assert(rounds(tensor_parallel_step(), StepKind::all_reduce) == 2);
static_assert(communications(tensor_parallel_step()) == 2);

Tensor<float, 2> full_of(float value) {
  const Tensor<float, 2> x({8, 8});
  x.fill_(value);
  return x;
}

constexpr Program merged_rounds(const ProgramCosts& costs = {}) {
  return coalesce(split_moves(expand(gradient_graph, gradient_by_data), two_ranks), two_ranks,
                  costs);
}
// Data parallelism: three sums, in one all-reduce.
static_assert(count(merged_rounds(), StepKind::all_reduce) == 3);
static_assert(rounds(merged_rounds(), StepKind::all_reduce) == 1);
static_assert(received_bytes(merged_rounds(), two_ranks) ==
              received_bytes(expand(gradient_graph, gradient_by_data), two_ranks));
// Where transfers take long, and computations longer: one all-reduce per bucket.
constexpr ProgramCosts long_transfers{.communication = {1, 0.5}, .points_per_us = 0.01};
static_assert(rounds(merged_rounds(long_transfers), StepKind::all_reduce) == 3);
static_assert(rounds(start_early(merged_rounds(long_transfers), two_ranks, long_transfers),
                     StepKind::all_reduce) == 3);

}  // namespace

TEST_CASE("rounds of random programs keep dependencies, bytes and every bit") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    const Shape& extents = mesh.extents();
    int merges = 0, starts = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Choices choose{seed};
      const Graph graph = random_graph(choose, 10 + choose(30));
      const std::vector<Layout> schemas = random_schemas(choose);
      const Program plain = split_moves(expand(graph, schemas), extents);
      REQUIRE(!plain.fault);
      const Program together = coalesce(plain, extents, slow);
      const Program early = start_early(together, extents, slow);
      INFO("seed " << seed << "\n" << to_string(early, mesh.state()));
      for (const Program* program : {&plain, &together, &early}) {
        CHECK(flaw_of(*program) == "");
        CHECK(received_bytes(*program, extents) == received_bytes(plain, extents));
        CHECK(communications(*program) == communications(plain));
      }
      merges += communications(plain) - rounds(together, StepKind::all_reduce) -
                rounds(together, StepKind::reduce_scatter) -
                rounds(together, StepKind::all_gather) - rounds(together, StepKind::all_to_all) -
                rounds(together, StepKind::exchange);
      starts += started(early);
      std::vector<ErasedTensor> inputs;
      for (int i = 0; i < random_inputs; ++i)
        inputs.push_back(part_of_numbers(schemas[std::size_t(i)], mesh.state(), i));
      Runner reference(plain, mesh), rounds_only(together, mesh), runner(early, mesh);
      const auto expected = reference(inputs);
      for (int repeat = 0; repeat < 2; ++repeat)
        for (Runner<TestDevice>* other : {&rounds_only, &runner}) {
          const auto outputs = (*other)(inputs);
          for (std::size_t k = 0; k < expected.size(); ++k)
            CHECK(are_same(outputs[k], expected[k]));
        }
    }
    CHECK(merges > 40);
    CHECK(starts > 40);
  });
}

TEST_CASE("gradients of data parallelism are one message for each peer and bucket") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    const std::array<index_t, 2> rows{16, 8}, square{8, 8};
    const auto x =
        DTensor<float, 2, std::remove_cvref_t<decltype(mesh)>, Placements<S0>>::unchecked(
            full_of(float(1 + world.rank())), mesh, rows);
    using W = DTensor<float, 2, std::remove_cvref_t<decltype(mesh)>, Placements<R>>;
    const auto w = W::unchecked(full_of(0.125f), mesh, square);
    Runner runner(merged_rounds(), mesh);
    const CommTrace trace(mesh.communicator());
    const auto [w1, w2, w3] = runner.run<W, W, W>(x, w, w, w);
    CHECK(trace.count() == 1);
    CHECK(trace.received_messages() == 2);  // addends and results of one all-reduce
    // rows of rank r are 1 + r, and stay so; a gradient is 8 rows of 1 and 8 of 4
    for (const W& updated : {w1, w2, w3}) CHECK(updated.to_local()(3, 5) == 0.125f - 40);
  });
}

TEST_CASE("a round that has started is dropped when its program fails") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    const auto f = [](const auto& x, const auto& w) {
      return std::tuple(redistribute(x, R{}), matmul(matmul(w, w), w));
    };
    const Graph graph = trace(f, arg<double>("x", {edge, edge}), arg<double>("w", {edge, edge}));
    const std::array schemas{schema(S0{}), schema(R{})};
    const Program program =
        start_early(split_moves(expand(graph, schemas), mesh.extents()), mesh.extents(), slow);
    REQUIRE(started(program) == 1);
    CHECK(to_string(program, mesh).find("starts in round 0") != std::string::npos);
    CHECK(to_string(program, mesh).find("wait for round 0") != std::string::npos);
    Runner runner(program, mesh);
    const std::vector inputs{part_of_numbers(schemas[0], mesh.state(), 0),
                             part_of_numbers(schemas[1], mesh.state(), 1)};
    const auto first = runner(inputs);
    CHECK_THROWS_AS(runner(std::span(inputs).first(1)), Error);
    const auto second = runner(inputs);
    CHECK(are_same(first[0], second[0]));
    for (index_t i = 0; i < edge; ++i)
      CHECK(static_cast<const double*>(first[0].local.data)[i * edge] == 1.0 / double(1 + i * 7));
  });
}
