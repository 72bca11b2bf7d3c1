// A transformer that predicts the next character, and its placements on a mesh dp x tp.
#pragma once

#include <vector>

#include <cleave/nn.hpp>

namespace gpt {

namespace nn = cleave::nn;
using cleave::index_t;
using cleave::Replicate;
using cleave::Shard;

template <class Tokens = nn::Embedding<>, class Places = nn::Embedding<>,
          class Blocks = std::vector<nn::TransformerBlock<>>, class Norm = nn::LayerNorm<>,
          class Head = nn::Linear<>>
struct Model {
  Tokens tokens;
  Places places;
  Blocks blocks;
  Norm norm;
  Head head;
  static constexpr nn::names members{"tokens", "places", "blocks", "norm", "head"};

  /// @param ids    [batch, sequence]
  /// @param where  [sequence], positions: 0, 1, ..
  /// @return       [batch, sequence, characters], not normalised
  auto operator()(const auto& ids, const auto& where) const {
    auto y = tokens(ids) + places(where);
    for (const auto& block : blocks) y = block(y);
    return head(norm(y));
  }
};
template <class Tokens, class Places, class Blocks, class Norm, class Head>
Model(Tokens, Places, Blocks, Norm, Head) -> Model<Tokens, Places, Blocks, Norm, Head>;

/// Heads and the hidden layer over tp: one all-reduce over tp after each; over dp, gradients only.
template <class Mesh>
auto placed_block(index_t width, index_t heads, const Mesh& mesh) {
  const auto rows = [&](const auto& m) { return nn::place(m, mesh, Replicate{}, Shard<0>{}); };
  const auto columns = [&](const auto& m) {
    return nn::Linear{nn::place(m.weight, mesh, Replicate{}, Shard<1>{}), nn::place(m.bias, mesh)};
  };
  const auto lazy = nn::transformer_block(width, heads, nn::Gelu{});
  const auto& a = lazy.attention;
  return nn::TransformerBlock{nn::place(lazy.attention_norm, mesh),
                              nn::MultiheadAttention{rows(a.query), rows(a.key), rows(a.value),
                                                     columns(a.out), a.mask, a.heads, a.groups},
                              nn::place(lazy.mlp_norm, mesh),
                              nn::Mlp{rows(lazy.mlp.up), nn::Gelu{}, columns(lazy.mlp.down)},
                              nn::None{}};
}

template <class Mesh>
auto placed_model(index_t characters, index_t context, index_t width, index_t heads, index_t layers,
                  const Mesh& mesh) {
  const auto tokens = nn::place(nn::embedding(characters, width, 0.1), mesh);
  const auto places = nn::place(nn::embedding(context, width, 0.1), mesh);
  std::vector<decltype(placed_block(width, heads, mesh))> blocks;
  for (index_t n = 0; n < layers; ++n) blocks.push_back(placed_block(width, heads, mesh));
  return Model{tokens, places, blocks, nn::place(nn::layer_norm(width), mesh),
               nn::place(nn::linear(width, characters), mesh)};
}

}  // namespace gpt
