// What traced functions take and return: any number of values, arrays and vectors of them, numbers.
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/random/dropout.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/named_output.hpp>
#include <cleave/spmd/passes/optimize.hpp>
#include <cleave/spmd/then.hpp>
#include <cleave/spmd/with_extents.hpp>

#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using spmd::schema;

/// x through as many layers as there are weights.
constexpr auto layers = [](const auto& x, const auto& weights) {
  auto y = matmul(x, weights[0]);
  for (std::size_t i = 1; i < weights.size(); ++i) y = matmul(relu(y), weights[i]);
  return y;
};

constexpr std::array forward_schemas{schema(S0{}), schema(R{})};
constexpr auto forward = spmd::frozen([] {
  return spmd::expand(
      spmd::trace([](const auto& x, const auto& w) { return std::tuple(matmul(x, w), x); },
                  spmd::arg<double>("x", {6, 3}), spmd::arg<double>("w", {3, 2})),
      forward_schemas);
});
constexpr std::array backward_schemas = [] {
  std::array<Layout, 3> all{};
  for (std::size_t k = 0; k < 2; ++k) all[k] = spmd::output_schemas(forward)[k];
  all[2] = schema(S0{});
  return all;
}();
constexpr auto backward_of_weights = spmd::frozen([] {
  return spmd::expand(
      spmd::trace([](const auto& y, const auto& x,
                     const auto& target) { return matmul(transpose(x), sub(y, target)); },
                  spmd::arg<double>("y", {6, 2}), spmd::arg<double>("x", {6, 3}),
                  spmd::arg<double>("target", {6, 2})),
      backward_schemas);
});
constexpr auto both_programs =
    spmd::frozen([] { return spmd::then(forward, backward_of_weights); });
static_assert(both_programs.inputs == 3 && both_programs.outputs.size() == 1);
static_assert(spmd::count(both_programs, StepKind::all_reduce) == 1);
static_assert(spmd::output_schemas(both_programs)[0] == schema(R{}));

}  // namespace

TEST_CASE("results may be arrays, vectors and tuples of them, nested, and numbers") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    using Y = DTensor<float, 1, Mesh, Placements<S0>>;
    const auto f = [](const auto& x) {
      return std::tuple(std::array{add(x, 1.0f), add(x, 2.0f)}, 2.5, std::tuple<>{},
                        std::vector{std::tuple(mul(x, 3.0f), std::int64_t(7))});
    };
    const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 1>{5}, 1);
    const spmd::Graph graph = spmd::trace(f, arg_for(x));
    REQUIRE(graph.outputs.size() == 5);
    spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(x)), mesh);
    const auto [a, b, number, c, whole] =
        runner.template run<Y, Y, DTensor<double, 0, Mesh, Placements<R>>, Y,
                            DTensor<std::int64_t, 0, Mesh, Placements<R>>>(x);
    CHECK(number.item() == 2.5);
    CHECK(whole.item() == 7);
    const auto given = x.full_tensor().to(Host{});
    for (index_t i = 0; i < 5; ++i) {
      CHECK(a.full_tensor().to(Host{})(i) == given(i) + 1);
      CHECK(b.full_tensor().to(Host{})(i) == given(i) + 2);
      CHECK(c.full_tensor().to(Host{})(i) == given(i) * 3);
    }
  });
}

TEST_CASE("any number of inputs: vectors, arrays and tuples of arguments") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    using Y = DTensor<double, 2, Mesh, Placements<S0>>;
    const auto x = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{5, 3}, 1);
    for (const int count : {1, 2, 5}) {
      std::vector<spmd::Arg<double, 2, TestDevice>> args;
      std::vector<DTensor<double, 2, Mesh, Placements<R>>> weights;
      std::vector<Layout> schemas{schema(S0{})};
      for (int i = 0; i < count; ++i) {
        weights.push_back(irregular<double, Placements<R>>(mesh, std::array<index_t, 2>{3, 3},
                                                           std::uint64_t(i + 2)));
        args.push_back(spmd::arg<double, TestDevice>("w", {3, 3}));
        schemas.push_back(schema(R{}));
      }
      const spmd::Graph graph = spmd::trace(layers, arg_for(x), args);
      CHECK(graph.inputs.size() == std::size_t(count + 1));
      spmd::Runner runner(spmd::expand(graph, schemas), mesh);
      const auto eager = layers(x, weights);
      const auto [y] = runner.template run<Y>(x, weights);
      CHECK(same_bits(y.to_local(), eager.to_local()));
      const std::vector<spmd::ErasedTensor> outputs = runner(spmd::inputs_of(x, weights));
      const auto again = spmd::typed<Y>(outputs[0], mesh);
      CHECK(same_bits(again.to_local(), eager.to_local()));
      using Other = DTensor<double, 2, Mesh, Placements<Replicate>>;
      CHECK(contains(error_of([&] { static_cast<void>(spmd::typed<Other>(outputs[0], mesh)); }),
                     "spmd::run: the tensor is float64 [5, 3] (Shard(0)), the call expects float64 "
                     "with 2 dimensions (Replicate)"));
      weights.push_back(weights[0]);
      CHECK(contains(error_of([&] { static_cast<void>(runner.template run<Y>(x, weights)); }),
                     "the program takes " + std::to_string(count + 1) + " inputs, not " +
                         std::to_string(count + 2)));
      CHECK(contains(error_of([&] { static_cast<void>(runner.template run<Y>(std::tuple<>{})); }),
                     "inputs, not 0"));
    }
  });
}

TEST_CASE("arguments in arrays and tuples reach the function as they were given") {
  const auto f = [](const auto& pair, const auto& several) {
    const auto& [x, y] = pair;
    return add(add(x, y), std::get<1>(several));
  };
  using spmd::arg;
  const spmd::Graph graph = spmd::trace(f, std::array{arg<float>("a", {3}), arg<float>("b", {3})},
                                        std::tuple(arg<double>("c", {4, 4}), arg<float>("d", {3})));
  REQUIRE(graph.inputs.size() == 4);
  CHECK(std::string(graph.inputs[3].name) == "d");
  CHECK(graph.values[std::size_t(graph.inputs[2].value)].dtype == DType::float64);
}

TEST_CASE("the output schemas of a forward program are input schemas of its backward program") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    using Y = DTensor<double, 2, std::remove_cvref_t<decltype(mesh)>, Placements<R>>;
    manual_seed(world, 2);
    const auto x = rand<double>({6, 3}, mesh, S0{}), target = rand<double>({6, 2}, mesh, S0{});
    const auto w = rand<double>({3, 2}, mesh);
    spmd::Runner runner(both_programs, mesh);
    const auto [gradient] = runner.template run<Y>(x, w, target);
    const auto gx = x.full_tensor(), gw = w.full_tensor(), gt = target.full_tensor();
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (index_t n = 0; n < 6; ++n) {
          double y = 0;
          for (index_t k = 0; k < 3; ++k) y += gx(n, k) * gw(k, j);
          sum += gx(n, i) * (y - gt(n, j));
        }
        CHECK(std::abs(gradient.to_local()(i, j) - sum) < 1e-12);
      }
  });
}

TEST_CASE("a program after another draws the numbers that the calls in a row would draw") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    using Y = DTensor<float, 1, Mesh, Placements<S0>>;
    const auto f = [](const auto& v) { return dropout(dropout(v, 0.5), 0.25); };
    const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 1>{60}, 1);
    const spmd::Program once = spmd::expand(spmd::trace(f, arg_for(x)), spmd::schemas_of(x));
    const spmd::Program twice = spmd::then(once, once);
    CHECK(twice.draws == 4);
    manual_seed(world, 8);
    const auto [y] = spmd::Runner(twice, mesh).template run<Y>(x);
    manual_seed(world, 8);
    const auto expected = f(f(x));
    CHECK(same_bits(y.to_local(), expected.to_local()));
  });
}

constexpr auto named_results = [](const auto& x, const auto& w) {
  const auto y = matmul(x, w);
  return std::tuple(spmd::named("columns", sum(y, dim<0>{})), y, spmd::named("product", y));
};
constexpr auto named_program = spmd::frozen([] {
  return spmd::expand(
      spmd::trace(named_results, spmd::arg<double>("x", {6, 3}), spmd::arg<double>("w", {3, 2})),
      std::array{schema(S0{}), schema(R{})});
});
static_assert(spmd::output_number(named_program, "product") == 2);
static_assert(spmd::output_schema(named_program, "product") == schema(S0{}));
static_assert(spmd::output_schema(named_program, "columns") == schema(R{}));

TEST_CASE("outputs keep their names through passes, joins and new extents") {
  using namespace spmd;
  const World world(dry_communicator(0, 2));
  const auto mesh = init_device_mesh<dp>(world, {2});
  const auto names = [&](const Program& program) {
    std::string text;
    for (const Output& output : program.outputs) text += std::string(output.name) + ";";
    CHECK(program.values[std::size_t(program.outputs[0].value)].shape.dims == 1);
    CHECK(output_schema(program, "columns") == schema(R{}));
    return text;
  };
  const Graph graph =
      trace(named_results, arg<double>("x", {extent("rows"), 3}), arg<double>("w", {3, 2}));
  const std::array schemas{schema(S0{}), schema(R{})};
  const Program program = expand(graph, schemas);
  CHECK(names(program) == "columns;;product;");
  CHECK(names(optimize(program, mesh)) == "columns;;product;");
  CHECK(names(with_extents(program, {{"rows", 4}})) == "columns;;product;");
  CHECK(contains(to_string(graph), "return columns=%"));
  CHECK(contains(to_string(program, mesh), ", product=%"));
  const Program before = expand(
      trace([](const auto& x) { return named("twice", add(x, x)); }, arg<double>("x", {4, 3})),
      std::array{schema(S0{})});
  const Program fixed = with_extents(program, {{"rows", 4}});
  CHECK(names(then(before, fixed)) == "columns;;product;");
  CHECK(error_of([&] { static_cast<void>(output_number(program, "sums")); }) ==
        "spmd::output_number: no output is named 'sums'; the program's names are 'columns', "
        "'product'");
  const Program alike = expand(
      trace([](const auto& x) { return std::tuple(named("y", exp(x)), named("y", relu(x))); },
            arg<float>("x", {4})),
      std::array{schema(S0{})});
  CHECK(contains(error_of([&] { static_cast<void>(output_schema(alike, "y")); }),
                 "more than one output is named 'y'"));
  CHECK(contains(error_of([&] { static_cast<void>(then(fixed, before)); }), "3 outputs"));
}

TEST_CASE("a name outside of a trace changes nothing") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto x = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{6, 3}, 1);
    const auto w = irregular<double, Placements<R>>(mesh, std::array<index_t, 2>{3, 2}, 2);
    const auto [columns, y, product] = named_results(x, w);
    static_assert(std::is_same_v<decltype(y), decltype(product)>);
    const auto gx = x.full_tensor().to(Host{}), gw = w.full_tensor().to(Host{});
    const auto whole = product.full_tensor().to(Host{});
    for (index_t i = 0; i < 6; ++i)
      for (index_t j = 0; j < 2; ++j) {
        double expected = 0;
        for (index_t k = 0; k < 3; ++k) expected += gx(i, k) * gw(k, j);
        CHECK(std::abs(whole(i, j) - expected) < 1e-12);
      }
  });
}

TEST_CASE("programs that do not fit are not joined") {
  using namespace spmd;
  const auto twice = [](const Layout& layout, index_t n) {
    return expand(trace([](const auto& x) { return add(x, x); }, arg<float>("x", {n})),
                  std::array{layout});
  };
  const Program whole = twice(schema(R{}), 6);
  CHECK(then(whole, whole).code.size() == 3);
  CHECK(error_of([&] { static_cast<void>(then(whole, twice(schema(S0{}), 6))); }) ==
        "spmd::then: output 0 of the first program is float32 [6] (Replicate), input 'x' of the "
        "second float32 [6] (Shard(0))");
  CHECK(contains(error_of([&] { static_cast<void>(then(whole, twice(schema(R{}), 5))); }),
                 "float32 [6] (Replicate), input 'x' of the second float32 [5] (Replicate)"));
  CHECK(contains(error_of([&] { static_cast<void>(then(whole, twice(schema(R{}, R{}), 6))); }),
                 "a program of 1 outputs on 1 mesh axes does not fit one of 1 inputs on 2"));
  CHECK(contains(error_of([&] { static_cast<void>(then(twice(schema(Shard<1>{}), 6), whole)); }),
                 "the first program could not be expanded: input 'x'"));
}
