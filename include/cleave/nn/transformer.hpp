// The transformer block.
#pragma once

#include <type_traits>

#include <cleave/nn/attention_layer.hpp>
#include <cleave/nn/dropout_layer.hpp>
#include <cleave/nn/layers.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>

namespace cleave::inline v0::nn {

/// x + attention(norm(x)), then x + mlp(norm(x)): each part adds to x and keeps its placements.
///
/// A Partial result of attention or mlp is reduced before it is added: all-reduced where x is
/// Replicate, reduce-scattered where x is sharded.
template <class AttentionNorm = LayerNorm<>, class Attention = MultiheadAttention<>,
          class MlpNorm = LayerNorm<>, class FeedForward = Mlp<>, class Drop = None>
struct TransformerBlock {
  AttentionNorm attention_norm;
  Attention attention;
  MlpNorm mlp_norm;
  FeedForward mlp;
  Drop dropout;  ///< applied to each term that is added to x; or None
  static constexpr names members{"attention_norm", "attention", "mlp_norm", "mlp", "dropout"};

  /// @param x  [batch, sequence, width]
  auto operator()(const auto& x) const {
    const auto y = sum_like(x, attention(attention_norm(x)));
    return sum_like(y, mlp(mlp_norm(y)));
  }

 private:
  auto sum_like(const auto& x, const auto& y) const {
    const auto request = cleave::detail::like(x);
    const auto placed = cleave::detail::call_as(request, ops::Redistribute{}, y);
    return cleave::detail::call_as(request, ops::Add{}, x, dropped(placed));
  }
  auto dropped(const auto& y) const {
    if constexpr (std::is_same_v<Drop, None>) return y;
    else return dropout(y);
  }
};
template <class AttentionNorm, class Attention, class MlpNorm, class FeedForward, class Drop>
TransformerBlock(AttentionNorm, Attention, MlpNorm, FeedForward, Drop)
    -> TransformerBlock<AttentionNorm, Attention, MlpNorm, FeedForward, Drop>;

/// A block of layer norms, causal attention, and an Mlp with a hidden width of 4 · width.
/// @param places  of the attention: None or Rotary
template <class T = float, class F = Relu, class Places = None>
auto transformer_block(index_t width, index_t heads, F activation = {}, Places places = {}) {
  return TransformerBlock{
      layer_norm<T>(width), multihead_attention<T>(width, heads, causal, places),
      layer_norm<T>(width), nn::mlp<T>(width, 4 * width, width, activation), None{}};
}

}  // namespace cleave::inline v0::nn
