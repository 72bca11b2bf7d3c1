// Attention: sums of values, weighted by how well each query fits their keys.
//
//     // y[S0,S1,R,R] = scaled_dot_product_attention(q[S0,S1,R,R], k[S0,S1,R,R], v[S0,S1,R,R])
//     //                                        batches over dp, heads over tp: nothing is sent
//     // y[S2] = scaled_dot_product_attention(q[S2], k[R], v[R])     sharded queries: likewise
//     // y[P]  = scaled_dot_product_attention(q[R], k[S2], v[S2])    sharded keys: two all-reduces
//     //                                                   of a number per query, and a sum
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/einsum.hpp>
#include <cleave/ops/elementwise.hpp>
#include <cleave/ops/softmax.hpp>
#include <cleave/ops/triangle.hpp>

namespace cleave {

namespace ops {

/// Each query sees the keys up to its own place: `fill` elsewhere, by global index.
struct CausalMask {
  double fill = 0;

  static constexpr const char* name = "causal_mask";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return Elementwise::factors(dims);
  }
  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    const int row = task.box->dims() - 2;
    kernels::copy_triangle<false>(on, x, y, task.box->begin[row] - task.box->begin[row + 1],
                                  T(accumulator_t<T>(fill)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return tril(g); }
};

/// The dimensions of k before its last two are those of q and v, too; those that only q has follow
/// them, so that several queries share a key.
template <bool IsCausal>
struct ScaledDotProductAttention : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q, class K, class V>
  static constexpr auto body(const Q& q, const K& k, const V& v) {
    using Text = Letters<Q::dims - 2, K::dims - 2>;
    const double scale = 1 / std::sqrt(double(shape_of(q)[Q::dims - 1]));
    const auto scores = resolve(
        einsum(cleave::detail::einsum_of<typename Text::Scores>(), mul(q, scale), k));
    const auto weights = softmax(masked(scores), dim<Q::dims - 1>{});
    return einsum(cleave::detail::einsum_of<typename Text::Result>(), weights, v);
  }

 private:
  /// "abcik,abjk->abcij" and "abcij,abjv->abciv" for 3 dimensions before the last two of q, 2 of k.
  template <int OfQ, int OfK>
  struct Letters {
    static constexpr RuleText letters(int count, char row, char column) {
      RuleText text;
      for (int d = 0; d < count; ++d) text += char('a' + d);
      text += row;
      text += column;
      return text;
    }
    struct Scores {
      static constexpr RuleText text = cleave::detail::factors_text(
          letters(OfQ, 'i', 'k'), letters(OfK, 'j', 'k'), letters(OfQ, 'i', 'j'));
    };
    struct Result {
      static constexpr RuleText text = cleave::detail::factors_text(
          letters(OfQ, 'i', 'j'), letters(OfK, 'j', 'v'), letters(OfQ, 'i', 'v'));
    };
  };

  static constexpr auto masked(const auto& scores) {
    if constexpr (IsCausal)
      return call_op(CausalMask{-std::numeric_limits<double>::infinity()}, scores);
    else return scores;
  }
};

}  // namespace ops

/// Says that a query sees the keys up to its own place only.
struct Causal {};
inline constexpr Causal causal{};

/// x where its column is at most its row, `fill` elsewhere: of the last two dimensions, by global
/// index. Any dimension may be sharded.
template <class... R, AnyTensor X>
constexpr auto causal_mask(const X& x, double fill) {
  static_assert(X::dims >= 2, "cleave: causal_mask takes matrices: the last two dimensions of x");
  return call_op<R...>(ops::CausalMask{fill}, x);
}

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
/// @cost     n · m numbers per head in memory, a few times during the call and once for a gradient
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
