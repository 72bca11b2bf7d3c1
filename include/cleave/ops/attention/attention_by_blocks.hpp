// The building blocks of attention. Where a rank holds all keys of its batches: by blocks, without
// storing the products of all queries and keys. Otherwise: whole-array products.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/host/attention_blocks.hpp>
#include <cleave/ops/attention/causal_mask.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/dot.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "abik": the letters of all dimensions but the last two, then `last`.
constexpr RuleText head_letters(int dims, std::string_view last) {
  return joined(dim_letters(0, dims - 2), last);
}

/// The products in attention with queries of Q dimensions and keys of K dimensions.
template <int Q, int K>
class AttentionProducts {
  struct OfPairs {
    static constexpr RuleText text =
        factors_text(head_letters(Q, "ik"), head_letters(K, "jk"), head_letters(Q, "ij"));
  };
  struct OfKeys {
    static constexpr RuleText text =
        factors_text(head_letters(Q, "ij"), head_letters(K, "jk"), head_letters(Q, "ik"));
  };
  struct OfQueries {
    static constexpr RuleText text =
        factors_text(head_letters(Q, "ij"), head_letters(Q, "ik"), head_letters(K, "jk"));
  };

 public:
  /// x y^T, for each pair of a query and a key.
  static constexpr auto pairs(const auto& x, const auto& y) {
    return einsum(einsum_of<OfPairs>(), x, y);
  }
  /// w y, for each query.
  static constexpr auto weighted(const auto& w, const auto& y) {
    return einsum(einsum_of<OfKeys>(), w, y);
  }
  /// w^T x, for each key.
  static constexpr auto gathered(const auto& w, const auto& x) {
    return einsum(einsum_of<OfQueries>(), w, x);
  }
};

/// ",abij": the last `dims` letters of the products with queries of `query_dims` dimensions.
constexpr RuleText mask_letters(int query_dims, int dims) {
  const RuleText all = head_letters(query_dims, "ij");
  return joined(',', std::string_view(all).substr(std::size_t(query_dims - dims)));
}

/// "bik,bjk,bjv" and the letters of the mask, if any, for q, k and v from operand `first` on.
template <std::size_t N>
constexpr RuleText attention_letters(const std::array<int, N>& dims, std::size_t first,
                                     bool has_mask) {
  return joined(head_letters(dims[first], "ik,"), head_letters(dims[first + 1], "jk,"),
                head_letters(dims[first + 1], "jv"),
                has_mask ? mask_letters(dims[first], dims[first + 3]) : RuleText{});
}

/// The square root of a positive number, rounded to nearest. std::sqrt is not a constant expression
/// for clang++.
constexpr double constant_sqrt(double x) {
  if (!std::is_constant_evaluated()) return std::sqrt(x);
  double root = x < 1 ? 1 : x, before = 0;
  do before = root, root = (before + x / before) / 2;
  while (root < before);  // Newton's method, from above
  // The remainder is exact: Dekker, Numerische Mathematik 18 (1971), multiplies in halves.
  const double high = 134217729 * root - (134217729 * root - root), low = root - high;
  const double square = root * root;
  const double remainder = (x - square) - ((high * high - square) + 2 * high * low + low * low);
  return root + remainder / (2 * root);
}

/// 1 / sqrt(d)
template <class Q>
constexpr double attention_scale(const Q& q) {
  const index_t d = shape_of(q)[Q::dims - 1];
  return d > 0 ? 1 / constant_sqrt(double(d)) : 1;
}

/// q k^T / sqrt(d), plus a mask of numbers; -infinity for keys that a query does not see.
template <bool IsCausal, class Q, class K>
constexpr auto attention_scores(const Q& q, const K& k) {
  const auto scores =
      resolve(AttentionProducts<Q::dims, K::dims>::pairs(mul(q, attention_scale(q)), k));
  if constexpr (IsCausal)
    return call_op(ops::CausalMask{-std::numeric_limits<double>::infinity()}, scores);
  else return scores;
}
template <bool IsCausal, class Q, class K, class M>
constexpr auto attention_scores(const Q& q, const K& k, const M& mask) {
  const auto scores = attention_scores<IsCausal>(q, k);
  if constexpr (std::is_same_v<typename M::value_type, bool>)
    return where(mask, scores, -std::numeric_limits<double>::infinity());
  else return add(scores, mask);
}

/// `whole(q, k, v)` where the dimensions of the masks are not sharded, else `parts(q, k, v)`.
template <unsigned OfQueries, unsigned OfKeysAndValues, class Q, class K, class V>
constexpr auto by_keys(const Q& q, const K& k, const V& v, const auto& whole, const auto& parts) {
  if constexpr (!(may_be_whole<OfQueries, Q>() && may_be_whole<OfKeysAndValues, K>() &&
                  may_be_whole<OfKeysAndValues, V>())) {
    return parts(q, k, v);
  } else if constexpr (call_level<Q> == 2 && call_level<K> == 2 && call_level<V> == 2) {
    return q.is_whole(OfQueries) && k.is_whole(OfKeysAndValues) && v.is_whole(OfKeysAndValues)
               ? whole(q, k, v)
               : parts(q, k, v);
  } else {
    return whole(q, k, v);
  }
}

/// The mask for this rank's queries and keys: from their global positions, or an array.
template <bool IsCausal>
kernels::AttentionMask attention_mask(const OperandRef& q, const OperandRef& k) {
  const auto first_of = [](const OperandRef& x) {
    return local_box(x.mesh, x.layout, shape_at(x.shape, x.dims)).begin[x.dims - 2];
  };
  if constexpr (IsCausal) return {true, first_of(q), first_of(k)};
  else return {};
}
template <bool IsCausal, class M>
kernels::AttentionArray<M> attention_mask(const OperandRef&, const OperandRef&,
                                          const kernels::Strided<const M>& mask) {
  return {mask};
}

}  // namespace detail

namespace ops {

template <int I, bool IsCausal>
struct AttentionSlope;
template <bool IsCausal>
struct AttentionSlopesByBlocks;

/// The gradients of operations whose results are those of AttentionByBlocks.
template <bool IsCausal>
struct WithAttentionGradients {
  template <int I, class... M>
    requires(I < 3)
  static constexpr auto gradient(wrt<I>, const auto& g, const auto& y, const auto& q, const auto& k,
                                 const auto& v, const M&... mask) {
    return call_op(AttentionSlope<I, IsCausal>{}, std::get<0>(g), slopes_of(g, y), std::get<1>(y),
                   q, k, v, mask...);
  }
  static constexpr auto gradients(const auto& g, const auto& y, const auto& q, const auto& k,
                                  const auto& v) {
    return call_op(AttentionSlopesByBlocks<IsCausal>{}, std::get<0>(g), slopes_of(g, y),
                   std::get<1>(y), q, k, v);
  }

 private:
  static constexpr auto slopes_of(const auto& g, const auto& y) {
    return sub(dot(std::get<0>(g), std::get<0>(y), dim<-1>{}), std::get<1>(g));
  }
};

/// Weighted means of the values, and the log-sum-exp of each query's scores.
template <bool IsCausal>
struct AttentionByBlocks : WithAttentionGradients<IsCausal> {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "jkv";
  static constexpr bool broadcasts = true;  // the mask
  template <class T, class...>
  using result_of = Types<T, T>;

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using cleave::detail::head_letters;
    return cleave::detail::joined(cleave::detail::attention_letters(dims, 0, N == 4), "->",
                                  head_letters(dims[0], "iv,"), head_letters(dims[0], "i"));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<T>& logarithms, const kernels::Strided<const T>& q,
                     const kernels::Strided<const T>& k, const kernels::Strided<const T>& v,
                     const auto&... mask) {
    attention(on, cleave::detail::attention_mask<IsCausal>(task.in[0], task.in[1], mask...), y,
              logarithms, q, k, v);
  }
};

/// The letters of (g, slopes, logarithms, q, k, v, mask..), the operands of the gradients of
/// AttentionByBlocks.
template <std::size_t N>
constexpr RuleText attention_slope_letters(const std::array<int, N>& dims) {
  using cleave::detail::head_letters;
  return cleave::detail::joined(head_letters(dims[0], "iv,"), head_letters(dims[0], "i,"),
                                head_letters(dims[0], "i,"),
                                cleave::detail::attention_letters(dims, 3, N == 7), "->");
}

/// The gradient of AttentionByBlocks with respect to operand I, by blocks; keys may be sharded.
/// @see kernels::attention_gradients
template <int I, bool IsCausal>
struct AttentionSlopeByBlocks {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "kv";
  static constexpr bool broadcasts = true;  // the mask

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using cleave::detail::head_letters;
    return cleave::detail::joined(
        attention_slope_letters(dims),
        I == 0 ? head_letters(dims[0], "ik") : head_letters(dims[4], I == 1 ? "jk" : "jv"));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& out,
                     const auto& g, const auto& slopes, const auto& logarithms, const auto& q,
                     const auto& k, const auto& v, const auto&... mask) {
    kernels::AttentionGradients<T> gradients;
    (I == 0 ? gradients.q : I == 1 ? gradients.k : gradients.v) = out;
    attention_gradients(on,
                        cleave::detail::attention_mask<IsCausal>(task.in[3], task.in[4], mask...),
                        gradients, g, slopes, logarithms, q, k, v);
  }
};

/// The gradients with respect to q, k and v in one pass, by blocks; keys may be sharded.
template <bool IsCausal>
struct AttentionSlopesByBlocks {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "kv";
  template <class T, class...>
  using result_of = Types<T, T, T>;

  static constexpr RuleText factors(const std::array<int, 6>& dims) {
    using cleave::detail::head_letters;
    return cleave::detail::joined(attention_slope_letters(dims), head_letters(dims[0], "ik,"),
                                  head_letters(dims[4], "jk,"), head_letters(dims[4], "jv"));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& q,
                     const kernels::Strided<T>& k, const kernels::Strided<T>& v, const auto&... x) {
    attention_gradients(on, cleave::detail::attention_mask<IsCausal>(task.in[3], task.in[4]),
                        kernels::AttentionGradients<T>{q, k, v}, x...);
  }
};

/// AttentionSlopeByBlocks; where it is differentiated again, products of whole arrays.
template <int I, bool IsCausal>
struct AttentionSlope : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class G, class S, class L, class Q, class K, class V, class... M>
  static constexpr auto body(const G& g, const S& slopes, const L& logarithms, const Q& q,
                             const K& k, const V& v, const M&... mask) {
    using cleave::detail::call_level;
    constexpr bool is_tracked = call_level<G> > 2 || call_level<S> > 2 || call_level<L> > 2 ||
                                call_level<Q> > 2 || call_level<K> > 2 || call_level<V> > 2;
    if constexpr (!is_tracked) {
      return call_op(AttentionSlopeByBlocks<I, IsCausal>{}, g, slopes, logarithms, q, k, v,
                     mask...);
    } else {
      using Products = cleave::detail::AttentionProducts<Q::dims, K::dims>;
      constexpr dim<Q::dims - 1> keys;
      const auto scores = cleave::detail::attention_scores<IsCausal>(q, k, mask...);
      const auto weights = exp(sub(scores, unsqueeze(logarithms, keys)));
      if constexpr (I == 2) {
        return Products::gathered(weights, g);
      } else {
        const auto rising = sub(Products::pairs(g, v), unsqueeze(slopes, keys));
        const auto ds = mul(mul(weights, rising), cleave::detail::attention_scale(q));
        if constexpr (I == 0) return Products::weighted(ds, k);
        else return Products::gathered(ds, q);
      }
    }
  }
};

/// Attention by blocks; 16-bit elements are computed in float.
/// @tparam Blocks  AttentionByBlocks, AttentionAcrossRanks, or AttentionOfKeys
template <class Blocks>
struct AttentionInFloat : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q>
  static constexpr auto body(const Q& q, const auto& k, const auto& v, const auto&... mask) {
    using T = typename Q::value_type;
    using A = accumulator_t<T>;
    if constexpr (std::is_same_v<A, T>) {
      return std::get<0>(call_op(Blocks{}, q, k, v, mask...));
    } else {
      return cast<T>(body(cast<A>(q), cast<A>(k), cast<A>(v), widened<A>(mask)...));
    }
  }

 private:
  template <class A, class M>
  static constexpr auto widened(const M& mask) {
    if constexpr (std::is_same_v<typename M::value_type, bool>) return mask;
    else return cast<A>(mask);
  }
};

/// Attention to keys and values that are not sharded within a batch.
template <bool IsCausal>
using AttentionOfWholeKeys = AttentionInFloat<AttentionByBlocks<IsCausal>>;

}  // namespace ops

}  // namespace cleave::inline v0
