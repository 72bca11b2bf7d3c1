// The parts of attention: by blocks where a rank of the host has all keys of its batches, without the
// products of all queries and keys in memory; and by products of whole arrays.
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
#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/causal_mask.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/ops/dot.hpp>
#include <cleave/ops/einsum.hpp>
#include <cleave/ops/functions.hpp>
#include <cleave/ops/redistribute.hpp>
#include <cleave/ops/select.hpp>
#include <cleave/ops/transpose.hpp>
#include <cleave/ops/whole_rows.hpp>

namespace cleave {

namespace detail {

/// "abik": the dimensions before the last two, and these.
constexpr RuleText head_letters(int dims, std::string_view last) {
  RuleText text;
  for (int d = 0; d < dims - 2; ++d) text += char('a' + d);
  text += last;
  return text;
}

/// Products of the arrays of attention, whose queries have Q dimensions and whose keys have K.
template <int Q, int K>
class AttentionProducts {
  struct OfPairs {
    static constexpr RuleText text = factors_text(head_letters(Q, "ik"), head_letters(K, "jk"),
                                                  head_letters(Q, "ij"));
  };
  struct OfKeys {
    static constexpr RuleText text = factors_text(head_letters(Q, "ij"), head_letters(K, "jk"),
                                                  head_letters(Q, "ik"));
  };
  struct OfQueries {
    static constexpr RuleText text = factors_text(head_letters(Q, "ij"), head_letters(Q, "ik"),
                                                  head_letters(K, "jk"));
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

/// 1 / sqrt(d)
template <class Q>
constexpr double attention_scale(const Q& q) {
  const index_t d = shape_of(q)[Q::dims - 1];
  return d > 0 ? 1 / std::sqrt(double(d)) : 1;
}

/// q k^T / sqrt(d); -infinity for keys that a query does not see.
template <bool IsCausal, class Q, class K>
constexpr auto attention_scores(const Q& q, const K& k) {
  const auto scores =
      resolve(AttentionProducts<Q::dims, K::dims>::pairs(mul(q, attention_scale(q)), k));
  if constexpr (IsCausal)
    return call_op(ops::CausalMask{-std::numeric_limits<double>::infinity()}, scores);
  else return scores;
}

/// Whether a rank of the host has all keys and values of its batches, and whole queries.
template <class Q, class K, class V>
constexpr bool has_whole_keys() {
  using Query = std::remove_cvref_t<decltype(innermost(std::declval<const Q&>()))>;
  using Key = std::remove_cvref_t<decltype(innermost(std::declval<const K&>()))>;
  using Value = std::remove_cvref_t<decltype(innermost(std::declval<const V&>()))>;
  return has_whole<Q::dims - 1, Query>() && has_whole<K::dims - 2, Key>() &&
         has_whole<K::dims - 1, Key>() && has_whole<K::dims - 2, Value>() &&
         has_whole<K::dims - 1, Value>();
}

}  // namespace detail

namespace ops {

template <int I, bool IsCausal>
struct AttentionSlope;

/// Weighted means of values, and the logarithms of the sums that weights were divided by.
template <bool IsCausal>
struct AttentionByBlocks {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "jkv";
  static constexpr bool needs_box = IsCausal;
  template <class... T>
  using result_of = Types<std::tuple_element_t<0, std::tuple<T...>>,
                          std::tuple_element_t<0, std::tuple<T...>>>;

  static constexpr RuleText factors(const std::array<int, 3>& dims) {
    using cleave::detail::head_letters;
    RuleText text = head_letters(dims[0], "ik,");
    text += head_letters(dims[1], "jk,");
    text += head_letters(dims[1], "jv->");
    text += head_letters(dims[0], "iv,");
    text += head_letters(dims[0], "i");
    return text;
  }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<T>& logarithms, const kernels::Strided<const T>& q,
                     const kernels::Strided<const T>& k, const kernels::Strided<const T>& v) {
    bool has_queries = true;
    for (int d = 0; d < task.in[0].dims - 1; ++d) has_queries = has_queries && task.in[0].shape[d] > 0;
    if (has_queries && k.extents[k.extents.dims - 2] == 0)
      task.fail("there are no keys that queries could see");
    kernels::attention(mask_of(task), y, logarithms, q, k, v);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto& y, const auto& q,
                                 const auto& k, const auto& v) {
    const auto slopes = sub(dot(std::get<0>(g), std::get<0>(y), dim<-1>{}), std::get<1>(g));
    return call_op(AttentionSlope<I, IsCausal>{}, std::get<0>(g), slopes, std::get<1>(y), q, k, v);
  }

  /// What queries see that are those of the first operand.
  static kernels::AttentionMask mask_of(const Task& task) {
    if constexpr (IsCausal) return {true, task.in_box->begin[task.in_box->dims() - 2]};
    else return {};
  }
};

/// The gradient of AttentionByBlocks in operand I, by blocks.
/// @see kernels::attention_gradient
template <int I, bool IsCausal>
struct AttentionSlopeByBlocks {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "jkv";
  static constexpr bool needs_box = IsCausal;

  static constexpr RuleText factors(const std::array<int, 6>& dims) {
    using cleave::detail::head_letters;
    RuleText text = head_letters(dims[0], "iv,");
    text += head_letters(dims[0], "i,");
    text += head_letters(dims[0], "i,");
    text += head_letters(dims[0], "ik,");
    text += head_letters(dims[4], "jk,");
    text += head_letters(dims[4], "jv->");
    text += I == 0 ? head_letters(dims[0], "ik") : head_letters(dims[4], I == 1 ? "jk" : "jv");
    return text;
  }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& out,
                     const auto&... x) {
    kernels::attention_gradient<I>(AttentionByBlocks<IsCausal>::mask_of(task), out, x...);
  }
};

/// The same. Where it is differentiated in turn, by products of whole arrays.
template <int I, bool IsCausal>
struct AttentionSlope : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class G, class S, class L, class Q, class K, class V>
  static constexpr auto body(const G& g, const S& slopes, const L& logarithms, const Q& q,
                             const K& k, const V& v) {
    using cleave::detail::call_level;
    constexpr bool is_tracked = call_level<G> > 2 || call_level<S> > 2 || call_level<L> > 2 ||
                                call_level<Q> > 2 || call_level<K> > 2 || call_level<V> > 2;
    if constexpr (!is_tracked) {
      return call_op(AttentionSlopeByBlocks<I, IsCausal>{}, g, slopes, logarithms, q, k, v);
    } else {
      using Products = cleave::detail::AttentionProducts<Q::dims, K::dims>;
      constexpr dim<Q::dims - 1> keys;
      const auto scores = cleave::detail::attention_scores<IsCausal>(q, k);
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

/// Attention of queries to keys and values that a rank has whole; of 16 bits in float.
template <bool IsCausal>
struct AttentionOfWholeKeys : Composite {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q>
  static constexpr auto body(const Q& q, const auto& k, const auto& v) {
    using T = typename Q::value_type;
    using A = accumulator_t<T>;
    if constexpr (std::is_same_v<A, T>) {
      return std::get<0>(call_op(AttentionByBlocks<IsCausal>{}, q, k, v));
    } else {
      return cast<T>(body(cast<A>(q), cast<A>(k), cast<A>(v)));
    }
  }
};

}  // namespace ops

}  // namespace cleave
