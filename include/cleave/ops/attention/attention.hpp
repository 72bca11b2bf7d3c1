// Attention: sums of values, weighted by how well their keys match each query.
//
//     // y[S0,S1,R,R] = scaled_dot_product_attention(q[S0,S1,R,R], k[S0,S1,R,R], v[S0,S1,R,R])
//     //                                        batches over dp, heads over tp: no communication
//     // y[S2] = scaled_dot_product_attention(q[S2], k[R], v[R])     sharded queries: the same
//     // y[P]  = scaled_dot_product_attention(q[R], k[S2], v[S2])    sharded keys: two all-reduces
//     //                                                   of one number per query; y is a sum
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/attention/attention_across_ranks.hpp>
#include <cleave/ops/attention/attention_by_blocks.hpp>
#include <cleave/ops/attention/causal_mask.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Checks the extents that a broadcasting rule does not compare, and that there are keys.
template <class Q>
constexpr void require_keys(const Q& q, const auto& k, const auto& v, const auto&... mask) {
  if (!knows_extents(q)) return;
  const Shape of_q = shape_of(q), of_k = shape_of(k), of_v = shape_of(v);
  const auto from_end = [](const Shape& shape, int d) { return shape[shape.dims - d]; };
  bool fits = from_end(of_q, 1) == from_end(of_k, 1) && from_end(of_k, 2) == from_end(of_v, 2);
  bool has_queries = from_end(of_q, 2) > 0, broadcasts = true;
  for (int d = 0; d < of_k.dims - 2; ++d) fits = fits && of_q[d] == of_k[d] && of_k[d] == of_v[d];
  for (int d = 0; d < of_q.dims - 2; ++d) has_queries = has_queries && of_q[d] > 0;
  [[maybe_unused]] const auto read_mask = [&](const Shape& shape) {
    for (int d = 1; d <= shape.dims; ++d) {
      const index_t whole = d == 1 ? from_end(of_k, 2) : from_end(of_q, d);
      broadcasts = broadcasts && (from_end(shape, d) == whole || from_end(shape, d) == 1);
    }
  };
  (read_mask(shape_of(mask)), ...);
  const bool lacks_keys = has_queries && from_end(of_k, 2) == 0;
  if (fits && broadcasts && !lacks_keys) return;
  ErrorContext context = context_of(q);
  context.shapes += " and " + to_string(of_k) + " and " + to_string(of_v);
  ((context.shapes += " and " + to_string(shape_of(mask))), ...);
  throw Error("scaled_dot_product_attention",
              !fits ? "q, k and v must be [b.., g.., n, d], [b.., m, d] and [b.., m, e]"
              : lacks_keys
                  ? "the number of keys must be positive if there are queries"
                  : "the mask does not broadcast to [.., n, m], the last dimensions of q k^T",
              std::move(context));
}

}  // namespace detail

namespace ops {

/// A softmax over dimension D; 0 where all elements are -infinity, as for queries that see no key.
template <int D>
struct AttentionWeights : Composite {
  static constexpr const char* name = "attention_weights";
  static constexpr auto body(const auto& x) {
    const auto largest = call_op(detail::FiniteOrZero{}, resolve(max(x, dim<D>{})));
    const auto weights = exp(sub(x, unsqueeze(largest, dim<D>{})));
    const auto total = call_op(detail::OrOne{}, resolve(sum(weights, dim<D>{})));
    return div(weights, unsqueeze(total, dim<D>{}));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return detail::softmax_gradient<D>(g, y);
  }
};

/// Attention masks: none, a bool per visible key, or numbers added to the products.
enum class MaskKind { none, seen, added };

/// The dimensions of k before its last two also lead q and v; q may have further dimensions after
/// them, along which queries share keys.
/// @tparam Mask  the kind of the operand after q, k and v
template <bool IsCausal, MaskKind Mask = MaskKind::none>
struct ScaledDotProductAttention : CompositeByPlacement {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q, class K>
  static constexpr auto body(const Q& q, const K& k, const auto& v, const auto&... mask) {
    cleave::detail::require_keys(q, k, v, mask...);
    const auto by_products = [&](const auto&... x) { return of_products(x..., mask...); };
    if constexpr (((cleave::detail::call_level<std::remove_cvref_t<decltype(mask)>> > 2) || ...))
      return by_products(q, k, v);  // the mask has a gradient
    else
      return cleave::detail::by_keys<1u << (Q::dims - 1), 1u << (K::dims - 1)>(
          q, k, v,
          [&](const auto&... x) {
            return call_op(AttentionInFloat<AttentionOfKeys<IsCausal>>{}, x..., mask...);
          },
          by_products);
  }

 private:
  template <class Q, class K>
  static constexpr auto of_products(const Q& q, const K& k, const auto& v, const auto&... mask) {
    using Products = cleave::detail::AttentionProducts<Q::dims, K::dims>;
    const auto scores = cleave::detail::attention_scores<IsCausal>(q, k, mask...);
    constexpr int keys = Q::dims - 1;
    if constexpr (Mask == MaskKind::none)
      return Products::weighted(softmax(scores, dim<keys>{}), v);
    else return Products::weighted(call_op(AttentionWeights<keys>{}, scores), v);
  }
};

}  // namespace ops

/// Tag for causal attention: query i sees keys 0 to i.
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

/// Scaled dot-product attention, softmax(q k^T / sqrt(d)) v: for every query, the mean of the
/// values weighted by its products with the keys.
///
/// Sharded batches, heads and queries need no communication. If keys and values are sharded along
/// their sequence, the softmax across ranks costs two all-reduces of one number per query, and the
/// result is Partial<Sum>. If one axis shards both the queries' and the keys' sequence, the solver
/// redistributes with the fewest bytes received: to shards of the batch, if there is one.
///
/// @param q  [b.., g.., n, d]; queries share keys along g.., as in grouped heads; g.. may be empty
/// @param k  [b.., m, d], m > 0
/// @param v  [b.., m, e]
/// @return   [b.., g.., n, e]
/// @cost     computed by blocks of queries and keys, with memory for q, the result and one block; a
///           gradient recomputes the weights. If keys are sharded along their sequence, the
///           products of queries and keys are computed twice. If q, k or v are sharded in their
///           last dimension, and for second derivatives, memory for several times n · m numbers per
///           head
/// @collective every rank of the mesh, if keys are sharded along their sequence, or an operand has
///           to be redistributed
/// @throws Error if the extents of q, k and v do not match, or there are queries but no keys
template <class... R, AnyTensor Q, AnyTensor K, AnyTensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v) {
  detail::require_attention<Q, K, V>();
  return call_op<R...>(ops::ScaledDotProductAttention<false>{}, q, k, v);
}

/// Causal attention: `scaled_dot_product_attention(q, k, v, causal)`. Query i sees keys 0 to i.
template <class... R, AnyTensor Q, AnyTensor K, AnyTensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v, Causal) {
  detail::require_attention<Q, K, V>();
  return call_op<R...>(ops::ScaledDotProductAttention<true>{}, q, k, v);
}

/// Masked attention: `scaled_dot_product_attention(q, k, v, mask)`. A bool mask selects the keys
/// that a query sees; a mask of numbers is added to q k^T / sqrt(d). The result is 0 for a query
/// that sees no key.
///
/// @param mask  [.., n, m], of bool (true: visible) or of the element type of q, with at most as
///              many dimensions as q; aligned at the last dimension, extents of 1 broadcast
/// @cost        as without a mask; n · m numbers per head if the mask tracks a gradient
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
CLEAVE_USAGE(scaled_dot_product_attention,
             "scaled_dot_product_attention(q, k, v), scaled_dot_product_attention(q, k, v, causal)")

}  // namespace cleave::inline v0
