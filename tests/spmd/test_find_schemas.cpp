// Automatic schemas are the best of all: compared with every choice of schemas and requests, for
// all graphs of a family; within limits of memory, too.
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/find_schemas.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "errors.hpp"

using namespace cleave;
using namespace cleave::spmd;
using testing::contains;
using testing::error_of;

namespace {

/// The operations of a chain: of the last value, and of a new weight, x or itself.
enum class Link { times_weight, weight_times, plus_x, times_x, transposed, relu };
constexpr int all_links = 6, links_without_relu = 5;

/// Chains over square matrices; the digits of `number` to the base `links` are the operations.
Graph chain_of(int number, int length, int links, index_t n) {
  Graph graph;
  const auto new_matrix = [&](const char* name) {
    return input(graph, Arg<float, 2, Host>{name, {n, n}});
  };
  const auto x = new_matrix("x");
  auto y = x;
  for (int i = 0; i < length; ++i, number /= links) switch (Link(number % links)) {
      case Link::relu: y = relu(y); break;
      case Link::times_weight: y = matmul(y, new_matrix("w")); break;
      case Link::weight_times: y = matmul(new_matrix("w"), y); break;
      case Link::plus_x: y = add(y, x); break;
      case Link::times_x: y = matmul(y, x); break;
      case Link::transposed: y = transpose(y); break;
    }
  graph.outputs.push_back({y.value()});
  return canonical(graph);
}

/// Replicate or a shard of a matrix on every axis: number `choice` of all.
Layout matrix_placements(int choice, int axes) {
  Layout layout = Layout::replicated(axes);
  for (int a = 0; a < axes; ++a, choice /= 3)
    if (choice % 3 > 0) layout[a] = Placement::shard(choice % 3 - 1);
  return layout;
}

struct Tried {
  double us;
  index_t peak;
};

/// Expands a graph with all schemas and, if wanted, all requests.
std::vector<Tried> try_all(const Graph& graph, const Shape& mesh, const ProgramCosts& costs,
                           bool requests) {
  int placements = 1;
  for (int a = 0; a < mesh.dims; ++a) placements *= 3;
  std::vector<int> choice(graph.inputs.size() + (requests ? graph.nodes.size() : 0), 0);
  std::vector<Tried> tried;
  for (;;) {
    std::vector<Layout> schemas;
    std::vector<Request> requested;
    for (std::size_t i = 0; i < choice.size(); ++i)
      if (i < graph.inputs.size()) schemas.push_back(matrix_placements(choice[i], mesh.dims));
      else if (choice[i] > 0)
        requested.push_back(
            {int(i - graph.inputs.size()), matrix_placements(choice[i] - 1, mesh.dims)});
    const Program program = expand(with_requests(graph, requested), schemas);
    REQUIRE_FALSE(program.fault);
    tried.push_back({estimated_us(program, mesh, costs), peak_bytes(program, mesh)});
    std::size_t i = 0;
    while (i < choice.size() &&
           ++choice[i] == (i < graph.inputs.size() ? placements : placements + 1))
      choice[i++] = 0;
    if (i == choice.size()) return tried;
  }
}

double best_of(const std::vector<Tried>& tried, index_t most_bytes) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tried& t : tried)
    if (t.peak <= most_bytes) best = std::min(best, t.us);
  return best;
}

/// Costs with which communication is dear, or cheap.
ProgramCosts costs_of(int number) {
  ProgramCosts costs;
  costs.communication = number % 2 == 0 ? CostModel{0.01, 2000} : CostModel{0.2, 10000};
  costs.points_per_us = number % 3 == 0 ? 200 : 2000;
  return costs;
}

/// Compares what is found with the best of all, without a limit and with tight ones.
/// @return the number of programs
std::size_t check_graph(const Graph& graph, const ProgramCosts& costs, const Shape& mesh,
                        bool requests, bool limits) {
  SearchOptions options{.costs = costs, .requests = requests, .exact_nodes = 100};
  const std::vector<Tried> tried = try_all(graph, mesh, costs, requests);
  index_t least = std::numeric_limits<index_t>::max();
  for (const Tried& t : tried) least = std::min(least, t.peak);
  for (const index_t most_bytes : {options.most_bytes, least + least / 4, least}) {
    if (!limits && most_bytes != options.most_bytes) continue;
    options.most_bytes = most_bytes;
    const FoundSchemas found = find_schemas(graph, mesh, options);
    CHECK(found.is_exact);
    CHECK(found.fits);
    CHECK(found.peak <= most_bytes);
    CHECK(found.us == doctest::Approx(best_of(tried, most_bytes)).epsilon(1e-9));
    const Program program = expand(with_requests(graph, std::span(found.requests)), found.schemas);
    CHECK(found.us == estimated_us(program, mesh, costs));
    CHECK(found.received == received_bytes(program, mesh, costs.communication));
    CHECK(found.peak == peak_bytes(program, mesh));
  }
  return tried.size();
}

/// The same of all chains of a length.
std::size_t check_chains(int length, int links, index_t n, const Shape& mesh, bool requests,
                         bool limits) {
  int count = 1;
  for (int i = 0; i < length; ++i) count *= links;
  std::size_t programs = 0;
  for (int number = 0; number < count; ++number) {
    CAPTURE(number);
    const Graph graph = chain_of(number, length, links, n);
    REQUIRE(graph.values.size() <= 10);
    programs += check_graph(graph, costs_of(number), mesh, requests, limits);
  }
  return programs;
}

/// A step that updates a weight, with composites whose kernels depend on placements.
Graph training_step(index_t n) {
  const auto step = [](const auto& x, const auto& target, const auto& weight) {
    const auto w = requires_grad(weight);
    const auto loss = mse_loss(softmax(matmul(x, w), dim<1>{}), target);
    backward(loss);
    add_(weight, mul(grad(w), -0.1f));
    return detach(loss);
  };
  return trace(step, arg<float>("x", {n, n}), arg<float>("target", {n, n}),
               arg<float>("weight", {n, n}));
}

const Shape one_axis(std::array<index_t, 1>{3});
const Shape two_axes(std::array<index_t, 2>{2, 3});

}  // namespace

TEST_CASE("schemas and requests of all chains of two operations are the best of all") {
  CHECK(check_chains(2, all_links, 6, one_axis, true, true) == 4800);
}
TEST_CASE("schemas of all chains of three operations are the best of all, within limits, too") {
  CHECK(check_chains(3, all_links, 10, one_axis, false, true) == 3000);
}
TEST_CASE("schemas of all chains of four operations, relu apart, are the best of all") {
  CHECK(check_chains(4, links_without_relu, 9, one_axis, false, false) > 10000);
}
TEST_CASE("schemas and requests on two axes are the best of all") {
  CHECK(check_chains(1, all_links, 6, two_axes, true, true) > 1000);
}
TEST_CASE("schemas of all chains of two operations on two axes are the best of all") {
  CHECK(check_chains(2, all_links, 7, two_axes, false, false) > 1000);
}
TEST_CASE("schemas of a training step that updates its weight are the best of all") {
  for (const index_t n : {6, 64})
    for (const int costs : {0, 1, 2})
      CHECK(check_graph(training_step(n), costs_of(costs), one_axis, false, true) == 27);
  CHECK(check_graph(training_step(32), costs_of(2), two_axes, false, false) == 729);
}
TEST_CASE("candidates and graphs that cannot be expanded are errors") {
  const Graph graph = training_step(4);
  const std::array candidates{std::vector{Layout::replicated(1)}};
  CHECK(contains(error_of([&] { find_schemas(graph, one_axis, {}, candidates); }),
                 "candidate 0 cannot be expanded: there are more or fewer schemas than inputs"));
  CHECK(contains(error_of([] { find_schemas(Graph{}, one_axis); }),
                 "no schemas were found with which the graph can be expanded on a mesh of [3]"));
}

TEST_CASE("the time of an operation is that of the rank that owns most") {
  const Graph graph = trace([](const auto& x) { return relu(x); }, arg<float>("x", {8, 6}));
  const auto time_of = [&](const Placement& p) {
    Layout layout;
    layout.axes = 1;
    layout[0] = p;
    return estimated_us(expand(graph, std::array{layout}), Shape::filled(1, 2));
  };
  CHECK(time_of(Placement::owned(1, 0)) == time_of(Placement::replicate()));
  CHECK(time_of(Placement::owned(1, 0)) > time_of(Placement::shard(0)));
}
