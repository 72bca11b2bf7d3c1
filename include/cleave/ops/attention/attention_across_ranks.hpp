// Attention with sharded keys: each rank processes its keys by blocks, twice. Ranks exchange the
// largest product and one sum per query.
//
//     // y[P] = attention(q[R], k[S1], v[S1])     two all-reduces of one number per query
#pragma once

#include <array>
#include <cstddef>
#include <tuple>

#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/host/attention_parts.hpp>
#include <cleave/ops/attention/attention_by_blocks.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>

namespace cleave::inline v0::ops {

/// The largest product of each query with a key.
template <bool IsCausal>
struct AttentionLargest {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr ReduceOp reduction = ReduceOp::max;
  static constexpr const char* replicated = "k";
  static constexpr bool broadcasts = true;  // the mask

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using cleave::detail::head_letters;
    RuleText mask;
    if constexpr (N == 3) mask = cleave::detail::mask_letters(dims[0], dims[2]);
    return cleave::detail::joined(head_letters(dims[0], "ik,"), head_letters(dims[1], "jk"), mask,
                                  "->", head_letters(dims[0], "i"));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& q, const kernels::Strided<const T>& k,
                     const auto&... mask) {
    attention_largest(on, cleave::detail::attention_mask<IsCausal>(task.in[0], task.in[1], mask...),
                      y, q, k);
  }
};

/// Sums of values weighted by exp(product - shift), and sums of these weights.
template <bool IsCausal>
struct AttentionSums {
  static constexpr const char* name = "scaled_dot_product_attention";
  static constexpr const char* replicated = "kv";  // the second result lacks v
  static constexpr bool broadcasts = true;         // the mask
  template <class T, class...>
  using result_of = Types<T, T>;

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using cleave::detail::head_letters;
    return cleave::detail::joined(head_letters(dims[1], "i,"),
                                  cleave::detail::attention_letters(dims, 1, N == 5), "->",
                                  head_letters(dims[1], "iv,"), head_letters(dims[1], "i"));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<T>& totals, const kernels::Strided<const T>& shifts,
                     const kernels::Strided<const T>& q, const kernels::Strided<const T>& k,
                     const kernels::Strided<const T>& v, const auto&... mask) {
    attention_sums(on, cleave::detail::attention_mask<IsCausal>(task.in[1], task.in[2], mask...), y,
                   totals, shifts, q, k, v);
  }
};

/// Computes the results of AttentionByBlocks for keys that may be sharded.
template <bool IsCausal>
struct AttentionAcrossRanks : Composite, WithAttentionGradients<IsCausal> {
  static constexpr const char* name = "scaled_dot_product_attention";

  static constexpr auto body(const auto& q, const auto& k, const auto& v, const auto&... mask) {
    const auto largest = resolve(call_op(AttentionLargest<IsCausal>{}, q, k, mask...));
    const auto shifts = call_op(detail::FiniteOrZero{}, largest);
    const auto sums = call_op(AttentionSums<IsCausal>{}, shifts, q, k, v, mask...);
    const auto totals = call_op(detail::OrOne{}, resolve(std::get<1>(sums)));
    return std::tuple{div(std::get<0>(sums), unsqueeze(totals, dim<-1>{})),
                      add(shifts, log(totals))};
  }
};

/// The results of AttentionByBlocks, by it where each rank has all keys of its batches.
template <bool IsCausal>
struct AttentionOfKeys : CompositeByPlacement, WithAttentionGradients<IsCausal> {
  static constexpr const char* name = "scaled_dot_product_attention";

  template <class Q, class K>
  static constexpr auto body(const Q& q, const K& k, const auto& v, const auto&... mask) {
    return cleave::detail::by_keys<1u << (Q::dims - 1), 3u << (K::dims - 2)>(
        q, k, v,
        [&](const auto&... x) { return call_op(AttentionByBlocks<IsCausal>{}, x..., mask...); },
        [&](const auto&... x) { return call_op(AttentionAcrossRanks<IsCausal>{}, x..., mask...); });
  }
};

}  // namespace cleave::inline v0::ops
