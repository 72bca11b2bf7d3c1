// Automatic schemas of a transformer's training step: the time of the search at program start, and
// what it finds against data parallelism.
#include <array>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <cleave/spmd.hpp>
#include <cleave/spmd/find_schemas.hpp>

#include "../timing.hpp"
#include "gpt_step.hpp"

using namespace cleave;
using bench::median;
using bench::seconds_of;

namespace {

constexpr bench::GptSizes sizes{8, 256, 512, 8, 12};

/// A step that updates its weights.
spmd::Graph traced_step() {
  spmd::Graph graph;
  const auto argument = [&]<std::size_t Rank>(const std::array<index_t, Rank>& shape) {
    return spmd::input(graph, spmd::Arg<float, int(Rank), Host>{"x", shape});
  };
  using Block = bench::GptBlock<Traced<float, 2>, Traced<float, 1>>;
  const std::array<index_t, 3> shape{sizes.batch, sizes.context, sizes.width};
  const auto x = argument(shape), target = argument(shape);
  std::vector<Block> blocks;
  for (index_t i = 0; i < sizes.layers; ++i) blocks.push_back(Block::made(sizes.width, argument));
  std::vector<int> updates;
  const auto loss = bench::gpt_step(x, target, blocks, sizes.heads,
                                    [&](const auto& w) { updates.push_back(w.value()); });
  graph.outputs.push_back({loss.value()});
  graph.updates.resize(graph.values.size());
  for (std::size_t i = 0; i < updates.size(); ++i)
    graph.updates[std::size_t(graph.inputs[i + 2].value)].latest = updates[i];
  return spmd::canonical(graph);
}

}  // namespace

int main() {
  const spmd::Graph graph = traced_step();
  const Shape mesh(std::array<index_t, 2>{4, 2});
  std::vector<double> times;
  spmd::FoundSchemas found;
  for (int i = 0; i < 7; ++i)
    times.push_back(seconds_of(1, [&] { found = spmd::find_schemas(graph, mesh); }));
  std::vector<Layout> data_parallel(graph.inputs.size(), Layout::replicated(mesh.dims));
  for (int a = 0; a < mesh.dims; ++a)
    data_parallel[0][a] = data_parallel[1][a] = Placement::shard(0);
  const spmd::Program manual = spmd::expand(graph, data_parallel);
  std::printf("spmd.auto_schemas_12_blocks_ms %.1f ms\n", 1e3 * median(times));
  std::printf("spmd.auto_schemas.us_over_data_parallel %.3f ratio\n",
              found.us / spmd::estimated_us(manual, mesh));
  std::printf("spmd.auto_schemas.bytes_over_data_parallel %.3f ratio\n",
              double(found.received) / double(received_bytes(manual, mesh)));
}
