// The training step of gpt_step.hpp as a graph.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <cleave/spmd.hpp>

#include "gpt_step.hpp"

namespace cleave::bench {

/// Inputs: the batch, its target and the weights. Outputs: the loss and the new weights.
inline spmd::Graph traced_gpt_step(const GptSizes& sizes) {
  spmd::Graph graph;
  const auto argument = [&]<std::size_t Rank>(const std::array<index_t, Rank>& shape) {
    return spmd::input(graph, spmd::Arg<float, int(Rank), Host>{"x", shape});
  };
  using Block = GptBlock<Traced<float, 2>, Traced<float, 1>>;
  const std::array<index_t, 3> shape{sizes.batch, sizes.context, sizes.width};
  const auto x = argument(shape), target = argument(shape);
  std::vector<Block> blocks;
  for (index_t i = 0; i < sizes.layers; ++i) blocks.push_back(Block::made(sizes.width, argument));
  std::vector<int> outputs;
  const auto loss = gpt_step(x, target, blocks, sizes.heads,
                             [&](const auto& w) { outputs.push_back(w.value()); });
  graph.outputs.push_back({loss.value()});
  for (const int output : outputs) graph.outputs.push_back({output});
  return spmd::canonical(graph);
}

}  // namespace cleave::bench
