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

#include "device.hpp"
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

constexpr index_t edge = 6;
constexpr int random_inputs = 4;

/// A slow machine: even small programs have something to hide, and transfers take long.
constexpr ProgramCosts slow{.communication = {50, 1}, .points_per_us = 0.5};

/// A repeatable source of choices.
struct Choices {
  std::uint64_t state;
  int operator()(int below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return int((state >> 33) % std::uint64_t(below));
  }
};

/// A random function of square matrices: products, sums, transposes, requests of placements.
Graph random_graph(Choices& choose, int nodes) {
  const auto body = [&](const auto&... x) {
    std::vector values{x...};
    for (int n = 0; n < nodes; ++n) {
      const auto pick = [&] { return values[std::size_t(choose(int(values.size())))]; };
      const auto a = pick(), b = pick();
      switch (choose(8)) {
        case 0: values.push_back(mul(matmul(a, b), 0.1)); break;
        case 1: values.push_back(add(a, b)); break;
        case 2: values.push_back(transpose(a)); break;
        case 3: values.push_back(add(mul(a, 0.25), sum(b, dim<0>{}))); break;
        case 4: values.push_back(redistribute(a, S0{}, R{})); break;
        case 5: values.push_back(redistribute(a, R{}, S1{})); break;
        case 6: values.push_back(redistribute(a, R{}, R{})); break;
        default: values.push_back(mul(matmul(transpose(a), b), 0.1)); break;
      }
    }
    return std::vector(values.end() - 5, values.end());
  };
  const auto x = arg<double, TestDevice>("x", {edge, edge});
  return trace(body, x, x, x, x);
}

std::vector<Layout> random_schemas(Choices& choose) {
  const std::array on{Placement::replicate(), Placement::shard(0), Placement::shard(1)};
  std::vector<Layout> schemas;
  for (int i = 0; i < random_inputs; ++i) {
    Layout layout = Layout::replicated(2);
    for (int a = 0; a < 2; ++a) layout[a] = on[std::size_t(choose(3))];
    schemas.push_back(layout);
  }
  return schemas;
}

ErasedTensor part_of_numbers(const Layout& layout, const MeshState& mesh, int which) {
  const Shape shape = Shape::filled(2, edge);
  const Box box = owned_box(layout, shape, mesh.extents(), mesh.coordinate());
  const Tensor<double, 2> part({box.extent(0), box.extent(1)});
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j)
      part(i, j) = 1.0 / double(1 + (box.begin[0] + i) * 7 + (box.begin[1] + j) * 3 + which);
  const auto own = part.to(TestDevice{});
  return {own.storage(), own.view(), shape, layout};
}

bool are_same(const ErasedTensor& a, const ErasedTensor& b) {
  const auto host = [](const ErasedTensor& x) {
    return cleave::detail::TensorAccess::make<Tensor<double, 2, TestDevice>>(
               std::shared_ptr<void>(x.storage), x.local.data, x.local.extents.begin(),
               x.local.strides.begin())
        .clone()
        .to(Host{});
  };
  if (!(a.local.extents == b.local.extents) || !(a.layout == b.layout)) return false;
  const auto left = host(a), right = host(b);
  for (index_t i = 0; i < left.size(); ++i)
    if (left.data()[i] != right.data()[i]) return false;
  return true;
}

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
constexpr std::array data_parallel{schema(S0{}), schema(R{}), schema(R{}), schema(R{})};
constexpr Shape two_ranks(std::array<index_t, 1>{2});

Tensor<float, 2> full_of(float value) {
  const Tensor<float, 2> x({8, 8});
  x.fill_(value);
  return x;
}

constexpr Program merged(const ProgramCosts& costs = {}) {
  return coalesce(split_moves(expand(gradient_graph, data_parallel), two_ranks), two_ranks, costs);
}
// Data parallelism: three sums, in one all-reduce.
static_assert(count(merged(), StepKind::all_reduce) == 3);
static_assert(rounds(merged(), StepKind::all_reduce) == 1);
static_assert(received_bytes(merged(), two_ranks) ==
              received_bytes(expand(gradient_graph, data_parallel), two_ranks));
// Where transfers take long, and computations longer: one all-reduce per bucket.
constexpr ProgramCosts long_transfers{.communication = {1, 0.5}, .points_per_us = 0.01};
static_assert(rounds(merged(long_transfers), StepKind::all_reduce) == 3);
static_assert(rounds(start_early(merged(long_transfers), two_ranks, long_transfers),
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
    Runner runner(merged(), mesh);
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
