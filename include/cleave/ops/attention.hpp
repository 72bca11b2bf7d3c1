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
#include <cleave/ops/attention_parts.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/causal_mask.hpp>
#include <cleave/ops/logsumexp.hpp>
#include <cleave/ops/softmax.hpp>

namespace cleave {

namespace ops {

/// A softmax over dimension D that is 0 where all elements are -infinity: of what sees nothing.
template <int D>
struct AttentionWeights : Composite {
  static constexpr const char* name = "attention_weights";
  static constexpr auto body(const auto& x) {
    const auto largest = call_op(FiniteOrZero{}, resolve(max(x, dim<D>{})));
    const auto weights = exp(sub(x, unsqueeze(largest, dim<D>{})));
    const auto total = call_op(OrOne{}, resolve(sum(weights, dim<D>{})));
    return div(weights, unsqueeze(total, dim<D>{}));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return detail::softmax_gradient<D>(g, y);
  }
};

/// Masks of attention: none, which keys are seen, what is added to products.
enum class MaskKind { none, seen, added };

/// The dimensions of k before its last two are those of q and v, too; those that only q has follow
/// them, so that several queries share a key.
/// @tparam Mask  what follows q, k and v
template <bool IsCausal, MaskKind Mask = MaskKind::none>
struct ScaledDotProductAttention : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q, class K, class V, class... M>
  static constexpr auto body(const Q& q, const K& k, const V& v, const M&... mask) {
    constexpr bool has_slope = ((cleave::detail::call_level<M> > 2) || ...);  // of the mask
    if constexpr (cleave::detail::has_whole_keys<Q, K, V>() && !has_slope) {
      return call_op(AttentionOfWholeKeys<IsCausal>{}, q, k, v, mask...);
    } else if constexpr (cleave::detail::has_some_keys<Q, K, V>() && !has_slope) {
      return call_op(AttentionInFloat<AttentionAcrossRanks<IsCausal>>{}, q, k, v, mask...);
    } else {
      using Products = cleave::detail::AttentionProducts<Q::dims, K::dims>;
      const auto scores = cleave::detail::attention_scores<IsCausal>(q, k, mask...);
      constexpr int keys = Q::dims - 1;
      if constexpr (Mask == MaskKind::none)
        return Products::weighted(softmax(scores, dim<keys>{}), v);
      else return Products::weighted(call_op(AttentionWeights<keys>{}, scores), v);
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
/// solver moves shards to where the fewest bytes are received: to batches, if there are any.
///
/// @param q  [b.., g.., n, d]: the g.. queries share a key, as in grouped heads; g.. may be empty
/// @param k  [b.., m, d], m > 0
/// @param v  [b.., m, e]
/// @return   [b.., g.., n, e]
/// @cost     by blocks of queries and keys, as much memory as q and the result and a block; a
/// gradient
///           computes weights again. Where keys are sharded in their sequence, and in programs, the
///           products of queries and keys are computed twice. On GPUs, where q, k or v are sharded
///           in their last dimension, and for second derivatives: n · m numbers per head, a few
///           times
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

/// The same where a mask says which keys a query sees, or what is added to its products with them:
/// `scaled_dot_product_attention(q, k, v, mask)`. A query that sees no key gets zeros.
///
/// @param mask  [.., n, m], at most as many dimensions as q, of bool (true: is seen) or of the
///              element type of q, aligned at the last dimension; extents of 1 repeat
/// @cost        as without; n · m numbers per head if the gradient of the mask is wanted
template <class... R, AnyTensor Q, AnyTensor K, AnyTensor V, AnyTensor M>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v, const M& mask) {
  detail::require_attention<Q, K, V>();
  using T = typename M::value_type;
  static_assert(
      M::dims >= 2 && M::dims <= Q::dims &&
          (std::is_same_v<T, bool> || std::is_same_v<T, typename Q::value_type>),
      "cleave: an attention mask must be [.., n, m], of bool or of the element type of q");
  constexpr auto kind = std::is_same_v<T, bool> ? ops::MaskKind::seen : ops::MaskKind::added;
  return call_op<R...>(ops::ScaledDotProductAttention<false, kind>{}, q, k, v, mask);
}

}  // namespace cleave
