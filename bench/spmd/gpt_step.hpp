// A training step of a transformer of several blocks as a function of tensors: forward, backward
// and the update of all weights. The same code runs as calls and as a program.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/ops/products/linear.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::bench {

struct GptSizes {
  index_t batch = 2, context = 32, width = 64, heads = 4, layers = 12;
};

/// The weights of a block: matrices [outputs, inputs] and vectors.
template <class Matrix, class Vector>
struct GptBlock {
  std::array<Matrix, 6> matrix;  ///< of queries, keys, values, their mean, up, down
  std::array<Vector, 10> vector;

  template <class Make>
  static GptBlock made(index_t width, const Make& make) {
    const auto square = [&] { return make(std::array{width, width}); };
    const auto row = [&](index_t n) { return make(std::array{n}); };
    return {{square(), square(), square(), square(), make(std::array{4 * width, width}),
             make(std::array{width, 4 * width})},
            {row(width), row(width), row(width), row(width), row(width), row(width), row(width),
             row(width), row(4 * width), row(width)}};
  }
};

/// x of [batch, context, width] after a block.
template <class X, class Block>
constexpr X after_block(const X& x, const Block& block, index_t heads) {
  const auto& [query, key, value, mean, up, down] = block.matrix;
  const auto& b = block.vector;
  const index_t width = shape_of(x)[2];
  const auto of_heads = [&](const auto& all) {
    return transpose(unflatten(all, dim<2>{}, {heads, width / heads}), dim<1, 2>{});
  };
  const auto n = layer_norm(x, b[0], b[1]);
  const auto q = of_heads(linear(n, query, b[2]));
  const auto k = of_heads(linear(n, key, b[3]));
  const auto v = of_heads(linear(n, value, b[4]));
  const auto attended = scaled_dot_product_attention(q, k, v, causal);
  const auto joined = flatten(transpose(attended, dim<1, 2>{}), dim<2, 3>{});
  const auto between = add(x, linear(joined, mean, b[5]));
  const auto hidden = gelu(linear(layer_norm(between, b[6], b[7]), up, b[8]));
  return add(between, linear(hidden, down, b[9]));
}

/// Calls visit on the weights of all blocks, in order.
void each_weight(auto& blocks, const auto& visit) {
  for (auto& block : blocks) {
    for (auto& w : block.matrix) visit(w);
    for (auto& w : block.vector) visit(w);
  }
}

/// The loss of a step, and the new weights, which `take` receives.
template <class X, class Matrix, class Vector>
auto gpt_step(const X& x, const X& target, const std::vector<GptBlock<Matrix, Vector>>& weights,
              index_t heads, const auto& take) {
  using Tracked2 = decltype(requires_grad(weights[0].matrix[0]));
  using Tracked1 = decltype(requires_grad(weights[0].vector[0]));
  std::vector<GptBlock<Tracked2, Tracked1>> blocks;
  for (const auto& block : weights)
    blocks.push_back([&]<std::size_t... M, std::size_t... V>(std::index_sequence<M...>,
                                                             std::index_sequence<V...>) {
      return GptBlock<Tracked2, Tracked1>{{requires_grad(block.matrix[M])...},
                                          {requires_grad(block.vector[V])...}};
    }(std::make_index_sequence<6>{}, std::make_index_sequence<10>{}));
  auto y = requires_grad(x);
  for (const auto& block : blocks) y = after_block(y, block, heads);
  const auto loss = mse_loss(y, target);
  backward(loss);
  each_weight(blocks, [&](const auto& w) { take(sub(detach(w), mul(grad(w), 0.01f))); });
  return detach(loss);
}

}  // namespace cleave::bench
