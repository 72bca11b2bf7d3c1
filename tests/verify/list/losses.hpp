// Losses.
#pragma once

#include <cleave/ops/losses/binary_cross_entropy.hpp>
#include <cleave/ops/losses/class_losses.hpp>
#include <cleave/ops/losses/mse_loss.hpp>

#include "listed.hpp"

namespace cleave::ops {

using LossParts = PartsOf<BinaryCrossEntropy<Reduction::mean>, detail::BinaryCrossEntropyTerm,
                          detail::LogitCrossEntropyTerm>;

namespace listing {

template <class Visit>
constexpr void each_loss_of_classes(const Visit& visit) {
  using Rows = TypeRows<Types<double, Int>, Types<float, Int>>;
  using One = TypeRows<Types<double, Int>>;
  constexpr const char* reason = "classes are indices";
  visit(listed<NllLoss<Reduction::mean>, Rows, DimsOf<2, 1>>(
      CLEAVE_CALL_2(y, classes, nll_loss(y, classes)), reason));
  visit(listed<NllLoss<Reduction::none>, One, DimsOf<2, 1>>(
      CLEAVE_CALL_2(y, classes, nll_loss<Reduction::none>(y, classes)), reason));
  visit(listed<ClassCrossEntropy<Reduction::sum>, Rows, DimsOf<2, 1>>(
      CLEAVE_CALL_2(logits, classes, cross_entropy<Reduction::sum>(logits, classes)), reason));
  visit(listed<ClassCrossEntropy<Reduction::none>, One, DimsOf<2, 1>>(
      CLEAVE_CALL_2(logits, classes, cross_entropy<Reduction::none>(logits, classes)), reason));
}

template <class Visit>
constexpr void each_loss(const Visit& visit) {
  using Real = SameTypes<2, double, float>;
  using Two = DimsOf<2, 2>;
  visit(listed<MseLoss<Reduction::mean>, Real, Two>(CLEAVE_CALL_2(x, y, mse_loss(x, y))));
  visit(listed<MseLoss<Reduction::none>, SameTypes<2, double>, Two>(
      CLEAVE_CALL_2(x, y, mse_loss<Reduction::none>(x, y))));
  visit(listed<BinaryCrossEntropy<Reduction::mean>, Real, Two>(
      CLEAVE_CALL_2(p, y, binary_cross_entropy(p, y))));
  visit(listed<BinaryCrossEntropyWithLogits<Reduction::sum>, Real, Two>(
      CLEAVE_CALL_2(z, y, binary_cross_entropy_with_logits<Reduction::sum>(z, y))));
  each_loss_of_classes(visit);
}

}  // namespace listing

}  // namespace cleave::ops
