// Attention: sums of values, weighted by how well each query fits their keys.
//
//     // y[S0,S1,R,R] = scaled_dot_product_attention(q[S0,S1,R,R], k[S0,S1,R,R], v[S0,S1,R,R])
//     //                                        batches over dp, heads over tp: nothing is sent
//     // y[S2] = scaled_dot_product_attention(q[S2], k[R], v[R])     sharded queries: likewise
//     // y[P]  = scaled_dot_product_attention(q[R], k[S2], v[S2])    sharded keys: two all-reduces
//     //                                                   of a number per query, and a sum
#pragma once

#include <type_traits>

#include <cleave/ops/attention_blocks.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/causal_mask.hpp>
#include <cleave/ops/softmax.hpp>

namespace cleave {

namespace ops {

/// The dimensions of k before its last two are those of q and v, too; those that only q has follow
/// them, so that several queries share a key.
template <bool IsCausal>
struct ScaledDotProductAttention : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q, class K, class V>
  static constexpr auto body(const Q& q, const K& k, const V& v) {
    if constexpr (cleave::detail::has_whole_keys<Q, K, V>()) {
      return call_op(AttentionOfWholeKeys<IsCausal>{}, q, k, v);
    } else {
      using Products = cleave::detail::AttentionProducts<Q::dims, K::dims>;
      const auto scores = cleave::detail::attention_scores<IsCausal>(q, k);
      return Products::weighted(softmax(scores, dim<Q::dims - 1>{}), v);
    }
  }
};

}  // namespace ops

/// Says that a query sees the keys up to its own place only.
struct Causal {};
inline constexpr Causal causal{};

namespace detail {

template <class Q, class K, class V>
constexpr void require_attention() {
  static_assert(K::dims >= 2 && Q::dims >= K::dims && V::dims == K::dims,
                "cleave: attention takes q [b.., g.., n, d], k [b.., m, d] and v [b.., m, e]");
  static_assert(std::is_same_v<typename Q::value_type, typename K::value_type> &&
                    std::is_same_v<typename K::value_type, typename V::value_type>,
                "cleave: q, k and v have different element types; cast one of them");
  require_real<Q>();
}

}  // namespace detail

/// softmax(q k^T / sqrt(d)) v: of every query a mean of the values, weighted by its products with
/// the keys.
///
/// Batches, heads and queries may be sharded, then nothing is sent. Where keys and values are
/// sharded in their sequence, a softmax across ranks costs two all-reduces of a number per query,
/// and the result is Partial<Sum>. Where one axis shards the sequences of queries and of keys, the
/// solver moves shards to where the least is received: to batches, if there are any.
///
/// @param q  [b.., g.., n, d]: the g.. queries share a key, as in grouped heads; g.. may be empty
/// @param k  [b.., m, d], m > 0
/// @param v  [b.., m, e]
/// @return   [b.., g.., n, e]
/// @cost     by blocks of queries and keys, as much memory as q and the result and a block, where a
///           rank of the host has keys and values whole but for batches; a gradient computes weights
///           again. Else, and in programs, n · m numbers per head, a few times during the call and
///           once for a gradient
/// @collective every rank of the mesh, if keys are sharded in their sequence, or operands elsewhere
template <class... R, AnyTensor Q, AnyTensor K, AnyTensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v) {
  detail::require_attention<Q, K, V>();
  return call_op<R...>(ops::ScaledDotProductAttention<false>{}, q, k, v);
}

/// The same where query i sees keys 0 to i: `scaled_dot_product_attention(q, k, v, causal)`.
template <class... R, AnyTensor Q, AnyTensor K, AnyTensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v, Causal) {
  detail::require_attention<Q, K, V>();
  return call_op<R...>(ops::ScaledDotProductAttention<true>{}, q, k, v);
}

}  // namespace cleave
