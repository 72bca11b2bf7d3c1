// Multi-head self-attention.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/nn/layers.hpp>
#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/attention/rotary_embedding.hpp>
#include <cleave/ops/shapes/reshape.hpp>

namespace cleave::inline v0::nn {

/// Rotary position embedding: rotates queries and keys by their positions. @see rotary_embedding
struct Rotary {
  double base = 10000;
};

/// Multi-head attention: concatenates the results of the heads and projects them. Each head of keys
/// and values is shared by a group of query heads (grouped-query attention).
///
/// With row-sharded weights of query, key and value, each rank computes some of the heads without
/// communication; `out` with sharded columns then gives Partial<Sum>:
///
///     // y[S0,P] = attention(x[S0,R])   query, key, value: weight[R,S0], bias[R,S0]
///     //                                out: weight[R,S1], bias[R,R]
template <class Q = Linear<>, class K = Linear<>, class V = Linear<>, class Out = Linear<>,
          class Mask = Causal, class Places = None>
struct MultiheadAttention {
  Q query;          ///< width to heads · groups · width of a head
  K key;            ///< width to heads · width of a head
  V value;          ///< width to heads · width of a head
  Out out;          ///< heads · groups · width of a head to width
  Mask mask;        ///< Causal or None
  index_t heads;    ///< of keys and values, a multiple of the ranks that shard them
  index_t groups;   ///< query heads per head of keys
  Places places{};  ///< Rotary or None
  static constexpr names members{"query", "key",   "value",  "out",
                                 "mask",  "heads", "groups", "places"};

  /// @param x  [batch, sequence, width]
  template <class X>
  auto operator()(const X& x) const {
    static_assert(X::dims == 3, "cleave: MultiheadAttention takes x [batch, sequence, width]");
    const auto q =
        placed(permute(unflatten(query(x), dim<2>{}, {heads, groups, -1}), dim<0, 2, 3, 1, 4>{}));
    const auto k = placed(permute(unflatten(key(x), dim<2>{}, {heads, -1}), dim<0, 2, 1, 3>{}));
    const auto v = permute(unflatten(value(x), dim<2>{}, {heads, -1}), dim<0, 2, 1, 3>{});
    return out(flatten(permute(attend(q, k, v), dim<0, 3, 1, 2, 4>{}), dim<2, 3, 4>{}));
  }

 private:
  auto placed(const auto& vectors) const {
    if constexpr (std::is_same_v<Places, None>) return vectors;
    else return rotary_embedding(vectors, places.base);
  }
  auto attend(const auto& q, const auto& k, const auto& v) const {
    if constexpr (std::is_same_v<Mask, None>) return scaled_dot_product_attention(q, k, v);
    else return scaled_dot_product_attention(q, k, v, mask);
  }
};
template <class Q, class K, class V, class Out, class Mask, class Places = None>
MultiheadAttention(Q, K, V, Out, Mask, index_t, index_t, Places = {})
    -> MultiheadAttention<Q, K, V, Out, Mask, Places>;

/// Attention with `heads` query heads of width / heads, and `key_heads` heads of keys and values.
///
/// @param mask    `causal`: a position attends to itself and earlier ones; `nn::None{}`: to all
/// @param places  `nn::Rotary{}`: products of queries and keys depend on their distance
/// @throws Error unless heads divides width, and key_heads divides heads
template <class T = float, class Mask = Causal, class Places = None>
auto multihead_attention(index_t width, index_t heads, index_t key_heads, Mask mask = {},
                         Places places = {}) {
  if (heads < 1 || width % heads != 0 || key_heads < 1 || heads % key_heads != 0)
    throw Error("multihead_attention",
                std::to_string(heads) + " query heads and " + std::to_string(key_heads) +
                    " key heads do not fit a width of " + std::to_string(width) +
                    "; the query heads must divide the width, the key heads the query heads");
  using Layer = Linear<Lazy<T, 2>, Lazy<T, 1>>;
  const index_t of_keys = width / heads * key_heads;
  return MultiheadAttention<Layer, Layer, Layer, Layer, Mask, Places>{linear<T>(width, width),
                                                                      linear<T>(width, of_keys),
                                                                      linear<T>(width, of_keys),
                                                                      linear<T>(width, width),
                                                                      mask,
                                                                      key_heads,
                                                                      heads / key_heads,
                                                                      places};
}
template <class T = float, class Mask = Causal, class Places = None>
  requires(!std::is_integral_v<Mask>)
auto multihead_attention(index_t width, index_t heads, Mask mask = {}, Places places = {}) {
  return multihead_attention<T>(width, heads, heads, mask, places);
}

}  // namespace cleave::inline v0::nn
