// Normalisation of rows.
#pragma once

#include <cleave/ops/normalisation/group_norm.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>

#include "listed.hpp"

namespace cleave::ops {

using RowNormParts = PartsOf<RowNorm<true>, RowNormSlope<true>, RowNormSlopeWhole<true>>;

namespace listing {

/// The epsilon of the calls below, large enough to affect results.
inline constexpr double norm_epsilon = 0.25;

template <class Visit>
constexpr void each_normalisation(const Visit& visit) {
  constexpr RowNorm<true> centered{{}, norm_epsilon};
  visit(listed<RowNorm<true>, SameTypes<3, double, float>, DimsOf<2, 1, 1>>(
      "layer_norm(x, weight, bias)",
      [](const auto& x, const auto& weight, const auto& bias) {
        return layer_norm(x, weight, bias, {.epsilon = norm_epsilon});
      },
      "", centered));
  visit(listed<RowNorm<true>, SameTypes<1, double>, DimsOf<3>>(
      "layer_norm(x); x has three dimensions",
      [](const auto& x) { return layer_norm(x, {.epsilon = norm_epsilon}); }, "", centered));
  visit(listed<RowNorm<false>, SameTypes<2, double, float>, DimsOf<2, 1>>(
      "rms_norm(x, weight)",
      [](const auto& x, const auto& weight) {
        return rms_norm(x, weight, {.epsilon = norm_epsilon});
      },
      "", RowNorm<false>{{}, norm_epsilon}));
  visit(listed<GroupNorm, SameTypes<3, double>, DimsOf<3, 1, 1>>(
      "group_norm(x, weight, bias, 12)",
      [](const auto& x, const auto& weight, const auto& bias) {
        return group_norm(x, weight, bias, 12, {.epsilon = norm_epsilon});
      },
      "", GroupNorm{{}, 12, norm_epsilon}));
  visit(listed<RowNormWhole<true>, SameTypes<3, double, float>, DimsOf<3, 1, 1>>(
      "layer_norm(x, weight, bias); rows are not sharded",
      [](const auto& x, const auto& weight, const auto& bias) {
        return call_op(RowNormWhole<true>{{norm_epsilon}}, x, weight, bias);
      }));
  visit(listed<RowNormWhole<false>, SameTypes<1, double>, DimsOf<2>>(
      "rms_norm(x); rows are not sharded",
      [](const auto& x) { return call_op(RowNormWhole<false>{{norm_epsilon}}, x); }));
}

}  // namespace listing

}  // namespace cleave::ops
