#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/check_expands.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

constexpr auto traced_product = [] {
  return trace([](const auto& x, const auto& w) { return relu(matmul(x, w)); },
               arg<float>("x", {4, 6}), arg<float>("w", {6, 8}));
};
constexpr auto product_graph = frozen(traced_product);
constexpr std::array legal_schemas{schema(R{}, S1{}), schema(S1{}, S0{})};
static_assert(check_expands<product_graph, legal_schemas>());
constexpr auto product_program = frozen([] { return expand(product_graph, legal_schemas); });

Fault fault_of(const Graph& g, std::initializer_list<Layout> schemas,
               const ExpandOptions& options = {}) {
  return expand(g, {schemas.begin(), schemas.size()}, options).fault;
}

}  // namespace

TEST_CASE("the compiler's program is the one that is created at run time") {
  CHECK(same(product_program, expand(traced_product(), legal_schemas)));
  CHECK_FALSE(same(product_program,
                   expand(traced_product(), std::array{schema(R{}, R{}), schema(R{}, R{})})));
}

TEST_CASE("a schema may count dimensions from the end") {
  CHECK(same(
      expand(product_graph, std::array{schema(R{}, Shard<-1>{}), schema(Shard<-1>{}, Shard<-2>{})}),
      product_program));
}

TEST_CASE("partial outputs are reduced, unless they are allowed") {
  const std::array schemas{schema(S1{}), schema(S0{})};
  const Graph g = trace([](const auto& x, const auto& w) { return matmul(x, w); },
                        arg<float>("x", {4, 6}), arg<float>("w", {6, 8}));
  const auto output = [](const Program& p) {
    return p.values[std::size_t(p.outputs[0].value)].layout;
  };
  CHECK(output(expand(g, schemas)) == schema(R{}));
  CHECK(output(expand(g, schemas, {.partial_outputs = true})) == schema(Partial<Sum>{}));
}

TEST_CASE("values are freed after their last use, outputs never") {
  const Program p = expand(product_graph, std::array{schema(S0{}), schema(R{})});
  REQUIRE(p.code.size() == 4);  // two inputs, matmul, relu
  CHECK(p.values[0].last_use == 2);
  CHECK(p.values[2].last_use == 3);
  CHECK(p.values[3].last_use == PlacedValue::kept);
}

TEST_CASE("all results of a node have placements") {
  const Graph g =
      trace([](const auto& x) { return argmax(x, dim<0>{}); }, arg<double>("x", {8, 6}));
  const Program p = expand(g, std::array{schema(S0{}, S1{})});
  int several = 0;
  for (const Instruction& i : p.code) {
    if (i.results < 2) continue;
    ++several;
    CHECK(p.values[std::size_t(i.first)].layout == schema(Partial<Max>{}, S0{}));
    CHECK(p.values[std::size_t(i.first) + 1].layout[1] == Placement::shard(0));
  }
  CHECK(several == 1);
  CHECK(count(p, StepKind::all_reduce) == 2);  // of the values and of the indices
}

TEST_CASE("a failed expansion is returned as a value") {
  const Graph g = traced_product();
  CHECK(fault_of(g, {schema(R{})}).kind == FaultKind::schema_count);
  CHECK(fault_of(g, {schema(R{}), schema(R{}, R{})}).kind == FaultKind::schema_axes);
  const Fault shard = fault_of(g, {schema(R{}), schema(Shard<2>{})});
  CHECK(shard.kind == FaultKind::schema_shard);
  CHECK(shard.place == 1);
  CHECK(to_string(shard) == "input 'w': its schema shards a dimension that it does not have");
}

TEST_CASE("a schema that the elements of an input do not allow is found before a run") {
  const auto fault = []<class T>(T, const Layout& layout) {
    return fault_of(trace([](const auto& x) { return x; }, arg<T>("x", {4})), {layout}).kind;
  };
  CHECK(fault(std::complex<float>(), schema(Partial<Max>{})) == FaultKind::schema_partial);
  CHECK(fault(std::int64_t(), schema(Partial<Avg>{})) == FaultKind::schema_partial);
  CHECK(fault(std::int64_t(), schema(Partial<Max>{})) == FaultKind::none);
  CHECK(fault(false, schema(R{}, Partial<Avg>{})) == FaultKind::schema_partial);
  CHECK(fault(false, schema(Partial<Sum>{})) == FaultKind::none);
  CHECK(to_string(Fault{FaultKind::schema_partial, -1, 0, "x"}) ==
        "input 'x': its schema is Partial by a reduction that is not defined for its elements");
}

TEST_CASE("requests that do not fit name their node") {
  const Graph two =
      trace([](const auto& x) { return redistribute(relu(x), R{}, R{}); }, arg<float>("x", {4, 6}));
  const Fault axes = fault_of(two, {schema(R{})});
  CHECK(axes.kind == FaultKind::asked_axes);
  CHECK(to_string(axes) ==
        "node 1 (redistribute): its request and the schemas have different numbers of placements");
  const Graph far =
      trace([](const auto& x) { return redistribute(x, Shard<3>{}); }, arg<float>("x", {4, 6}));
  CHECK(fault_of(far, {schema(R{})}).kind == FaultKind::asked_shard);
  const Graph partial =
      trace([](const auto& x) { return redistribute(x, Partial<Sum>{}); }, arg<float>("x", {4, 6}));
  CHECK(fault_of(partial, {schema(R{})}).kind == FaultKind::asked_partial);
}

TEST_CASE("communication that had to be explicit is an error of its node and operand") {
  const Graph g =
      trace([](const auto& x, const auto& w) { return matmul<explicit_communication>(x, w); },
            arg<float>("x", {4, 6}), arg<float>("w", {6, 8}));
  CHECK(fault_of(g, {schema(S0{}), schema(R{})}).kind == FaultKind::none);
  const Fault moves = fault_of(g, {schema(S0{}), schema(S0{})});
  CHECK(moves.kind == FaultKind::not_explicit);
  CHECK(moves.node == 0);
}

TEST_CASE("a dimension of extent 1 that repeats must not be sharded over several ranks") {
  const Graph g = trace([](const auto& x, const auto& row) { return add(x, row); },
                        arg<float>("x", {4, 6}), arg<float>("row", {1, 6}));
  const Fault fault = fault_of(g, {schema(S0{}), schema(S0{})});
  CHECK(fault.kind == FaultKind::repeats_sharded);
  CHECK(fault.place == 1);
  CHECK(fault_of(g, {schema(S0{}), schema(S0{})}, {.mesh = std::array<index_t, 1>{1}}).kind ==
        FaultKind::none);
  CHECK(fault_of(g, {schema(S0{}), schema(R{})}).kind == FaultKind::none);
}
