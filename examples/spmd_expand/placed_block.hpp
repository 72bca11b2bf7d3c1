// A transformer block and three ways to place it on a mesh of dp x tp ranks.
#pragma once

#include <cleave/nn.hpp>

namespace spmd_expand {

namespace nn = cleave::nn;
using cleave::Replicate;
using cleave::Shard;

inline constexpr cleave::index_t width = 32, heads = 4;

inline auto block() { return nn::transformer_block(width, heads, nn::Gelu{}); }

/// Every rank has the whole block: for data parallelism.
constexpr auto replicated = [](const auto& mesh) {
  return requires_grad(nn::place(block(), mesh));
};

/// The parameters as they are placed: the operations of the block communicate where they must.
constexpr auto as_placed = [](const auto& block) { return block; };

/// The whole parameters on every rank, while they are used: for fully sharded blocks.
constexpr auto gathered = [](const auto& block) {
  const auto whole = [](const auto& x) { return redistribute(x, Replicate{}, Replicate{}); };
  return nn::map_tensors(block, whole, whole);
};

/// Every rank of dp has a part of each parameter.
constexpr auto sharded = [](const auto& mesh) {
  return requires_grad(nn::place(block(), mesh, Shard<0>{}, Replicate{}));
};

/// Heads and the hidden layer over tp.
constexpr auto sharded_heads = [](const auto& mesh) {
  const auto rows = [&](const auto& m) { return nn::place(m, mesh, Replicate{}, Shard<0>{}); };
  const auto columns = [&](const auto& m) {
    return nn::Linear{nn::place(m.weight, mesh, Replicate{}, Shard<1>{}), nn::place(m.bias, mesh)};
  };
  const auto lazy = block();
  const auto& a = lazy.attention;
  return requires_grad(nn::TransformerBlock{
      nn::place(lazy.attention_norm, mesh),
      nn::MultiheadAttention{rows(a.query), rows(a.key), rows(a.value), columns(a.out), a.mask,
                             a.heads, a.groups},
      nn::place(lazy.mlp_norm, mesh),
      nn::Mlp{rows(lazy.mlp.up), nn::Gelu{}, columns(lazy.mlp.down)}, nn::None{}});
};

}  // namespace spmd_expand
