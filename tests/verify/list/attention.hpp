// Attention and its parts.
#pragma once

#include <cleave/ops/attention/attention.hpp>
#include <cleave/ops/attention/rotary_embedding.hpp>

#include "listed.hpp"

namespace cleave::ops {

using AttentionParts =
    PartsOf<AttentionOfWholeKeys<true>, AttentionByBlocks<true>, AttentionSlope<0, true>,
            AttentionSlopeByBlocks<0, true>, AttentionSlopesByBlocks<true>, AttentionWeights<1>,
            AttentionInFloat<AttentionAcrossRanks<true>>, AttentionAcrossRanks<true>,
            AttentionOfKeys<true>, AttentionLargest<true>, AttentionSums<true>>;

namespace listing {

template <class Visit>
constexpr void each_of_attention(const Visit& visit) {
  visit(listed<CausalMask, SameTypes<1, double, float, Complex>, DimsOf<3>>(
      CLEAVE_CALL_1(x, causal_mask(x, -1))));
  visit(listed<ScaledDotProductAttention<false>, SameTypes<3, double, float>, DimsOf<3, 3, 3>>(
      CLEAVE_CALL_3(q, k, v, scaled_dot_product_attention(q, k, v))));
  visit(listed<ScaledDotProductAttention<true>, SameTypes<3, double>, DimsOf<4, 3, 3>>(
      "scaled_dot_product_attention(q, k, v, causal); queries share keys",
      [](const auto& q, const auto& k, const auto& v) {
        return scaled_dot_product_attention(q, k, v, causal);
      }));
  const auto masked = [](const auto& q, const auto& k, const auto& v, const auto& mask) {
    return scaled_dot_product_attention(q, k, v, mask);
  };
  visit(listed<ScaledDotProductAttention<false, MaskKind::seen>,
               TypeRows<Types<double, double, double, bool>>, DimsOf<3, 3, 3, 2>>(
      "scaled_dot_product_attention(q, k, v, mask)", masked, "a bool mask is not differentiable"));
  visit(listed<ScaledDotProductAttention<false, MaskKind::added>, SameTypes<4, double, float>,
               DimsOf<3, 3, 3, 2>>("scaled_dot_product_attention(q, k, v, mask); additive mask",
                                   masked));
  visit(listed<AttentionOfWholeKeys<false>, SameTypes<3, double, float>, DimsOf<4, 3, 3>>(
      "scaled_dot_product_attention(q, k, v); keys are not sharded",
      [](const auto& q, const auto& k, const auto& v) {
        return call_op(AttentionOfWholeKeys<false>{}, q, k, v);
      }));
  visit(listed<AttentionOfWholeKeys<true>, SameTypes<3, double>, DimsOf<3, 3, 3>>(
      "scaled_dot_product_attention(q, k, v, causal); keys are not sharded",
      [](const auto& q, const auto& k, const auto& v) {
        return call_op(AttentionOfWholeKeys<true>{}, q, k, v);
      }));
  visit(listed<RotaryEmbedding, SameTypes<1, double, float>, DimsOf<3>>(
      CLEAVE_CALL_1(x, rotary_embedding(x))));
}

}  // namespace listing

}  // namespace cleave::ops
