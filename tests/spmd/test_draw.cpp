// Pictures of graphs and programs, and the text of passes: well-formed, with the right figures.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/draw_dot.hpp>
#include <cleave/spmd/draw_svg.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/remove_unused.hpp>
#include <cleave/spmd/print_passes.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;

namespace {

Graph drawn_layers() {
  return trace([](const auto& x, const auto& w1,
                  const auto& w2) { return matmul(relu(matmul(x, w1) * 0.5f), w2); },
               arg<float>("x<&\">", {64, 32}), arg<float>("w1", {32, 128}),
               arg<float>("w2", {128, 16}));
}

Program drawn_program() {
  return expand(drawn_layers(),
                std::array{schema(Shard<0>{}, Replicate{}), schema(Replicate{}, Shard<1>{}),
                           schema(Replicate{}, Shard<0>{})});
}

int occurrences(std::string_view text, std::string_view part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

/// Whether every element of XML is closed, in order, and every attribute has a value in quotes.
bool is_well_formed(std::string_view text) {
  std::vector<std::string_view> open;
  while (!text.empty()) {
    const std::size_t begin = text.find('<');
    const std::string_view plain = text.substr(0, begin);
    if (plain.find('>') != plain.npos) return false;
    for (std::size_t at = 0; (at = plain.find('&', at)) != plain.npos; ++at)
      if (plain.find(';', at) == plain.npos) return false;
    if (begin == text.npos) break;
    const std::size_t end = text.find('>', begin);
    if (end == text.npos) return false;
    std::string_view element = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + 1);
    if (occurrences(element, "\"") != 2 * occurrences(element, "=\"")) return false;
    const std::string_view name = element.substr(0, element.find_first_of(" /", 1));
    if (element.front() == '/') {
      if (open.empty() || open.back() != element.substr(1)) return false;
      open.pop_back();
    } else if (element.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a picture of a graph is well-formed and has a line for each value that is used") {
  const std::string svg = to_svg(drawn_layers());
  CHECK(is_well_formed(svg));
  CHECK_FALSE(is_well_formed(svg.substr(0, svg.size() - 3)));
  CHECK(occurrences(svg, "<text ") == 9);                // 8 lines and the summary
  CHECK(occurrences(svg, "stroke-width") == 8);          // all values
  CHECK(occurrences(svg, "%3: 32.0 KiB</title>") == 1);  // 64 x 128 floats
  CHECK(occurrences(svg, "input x&lt;&amp;&quot;&gt;") == 1);
}

TEST_CASE("a picture of a program shows bytes, communication and memory") {
  const World world(dry_communicator(0, 32));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 8});
  const Program program = drawn_program();
  const std::string svg = to_svg(program, mesh);
  CHECK(is_well_formed(svg));
  CHECK(occurrences(svg, "%4: 1.0 KiB</title>") == 1);  // 16 x 16 floats of the first product
  CHECK(occurrences(svg, "font-weight=\"bold\">%8 = all_reduce(sum) over tp") == 1);
  // inputs: 16 x 32, 32 x 16 and 16 x 16 floats; each product 16 x 16, and what is received
  CHECK(occurrences(svg, "inputs: 5.0 KiB</title>") == 9);  // in each row
  CHECK(occurrences(svg, "values: 1.0 KiB</title>") == 3);  // first product, mul, relu
  CHECK(occurrences(svg, "values: 2.0 KiB</title>") == 2);  // second product, its sum
  CHECK(occurrences(svg, "fill=\"#c04000\"><title>values: 2.0 KiB") == 2);
  CHECK(occurrences(svg, "planned: 8.0 KiB") == 1);  // a block of 2 KiB, and 1 KiB received
}

TEST_CASE("Graphviz gets a node for each line and an edge with bytes for each use") {
  const World world(dry_communicator(0, 32));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 8});
  const std::string graph = to_dot(drawn_layers()), program = to_dot(drawn_program(), mesh);
  CHECK(occurrences(graph, " -> ") == 8);  // 2 matmuls, mul, relu, the output
  CHECK(graph.find("r3 -> r5 [label=\"32.0 KiB\"];") != graph.npos);
  CHECK(graph.find("r0 [label=\"%0 = input x<&\\\">  float32 [64, 32]\"") != graph.npos);
  CHECK(occurrences(program, " -> ") == 9);  // and the all-reduce
  CHECK(program.find("r4 -> r5 [label=\"1.0 KiB\"];") != program.npos);
  CHECK(occurrences(program, "fillcolor=orange") == 1);
  for (const std::string& text : {graph, program}) {
    CHECK(occurrences(text, "{") == occurrences(text, "}"));
    CHECK(text.substr(0, 8) == "digraph ");
    CHECK(text.substr(text.size() - 2) == "}\n");
  }
}

TEST_CASE("the memory over the time of a run is at most what is planned, and meets it once here") {
  const Shape mesh(std::array<index_t, 2>{4, 8});
  const Program program = drawn_program();
  const MemoryPlan plan = plan_memory(program, mesh, Shape::filled(2, 0));
  CHECK(plan.in_use == std::vector<index_t>{0, 0, 0, 0, 1024, 1024, 1024, 2048, 2048});
  CHECK(plan.peak() == 3072);
  CHECK(to_string(plan) ==
        "%4: 1024 bytes at 0\n"
        "%5: 1024 bytes at 0\n"
        "%6: 1024 bytes at 0\n"
        "%7: 1024 bytes at 1024\n"
        "block of 2048 bytes, at most 1024 bytes elsewhere\n");
  const std::vector<FusedRun> runs = fuse_elementwise(program);
  CHECK(to_string(std::span(runs), program) == "%5..%6: mul, relu\n");
}

TEST_CASE("the difference that a pass makes does not depend on the numbers of values") {
  const World world(dry_communicator(0, 4));
  const auto mesh = init_device_mesh<dp>(world, {4});
  Program program = expand(
      trace([](const auto& x) { return std::tuple(exp(x), relu(x)); }, arg<float>("x", {8, 4})),
      std::array{schema(Shard<0>{})});
  program.outputs.erase(program.outputs.begin());
  const std::string before = to_string(program, mesh);
  remove_unused(program);
  CHECK(difference(before, to_string(program, mesh)) ==
        "  %0 = input x  float32 [8, 4] (Shard(0))\n"
        "- %1 = exp(%0)  float32 [8, 4] (Shard(0))\n"
        "  %1 = relu(%0)  float32 [8, 4] (Shard(0))\n"
        "  return %1\n"
        "  receives 0 bytes per rank on dp=4\n");
  CHECK(difference("a\nb\n", "a\nc\nb\n") == "  a\n+ c\n  b\n");
  CHECK(difference("", "a\n") == "+ a\n");
}
