// Operations on class probabilities.
#pragma once

#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/exact_products.hpp>

#include "listed.hpp"

namespace cleave::ops {

using ExactClassParts = PartsOf<ExactCrossEntropy, ExactLogSoftmax>;
using SoftmaxSlopeParts = PartsOf<Softmax<0>, SoftmaxSlope<0, false>, SoftmaxSlopeOfRows<0, false>>;
using ClassLossParts = PartsOf<CrossEntropy, ClassLosses, ClassLossesOfRows, ClassSlopes,
                               ClassSlopesOfRows, detail::IsCounted, detail::CountedClass>;

}  // namespace cleave::ops

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_of_classes(const Visit& visit) {
  visit(listed<LogSoftmax<1>, SameTypes<1, double, float>, DimsOf<2>>(
      CLEAVE_CALL_1(x, log_softmax(x, dim<1>{}))));
  visit(listed<Softmax<0>, SameTypes<1, double, float>, DimsOf<2>>(
      CLEAVE_CALL_1(x, softmax(x, dim<0>{}))));
  visit(listed<CrossEntropy, TypeRows<Types<double, Int>, Types<float, Int>>, DimsOf<2, 1>>(
      CLEAVE_CALL_2(logits, classes, cross_entropy(logits, classes)), "classes are indices"));
  visit(listed<ExactCrossEntropy, TypeRows<Types<double, Int>, Types<float, Int>>, DimsOf<2, 1>>(
      CLEAVE_CALL_2(logits, classes, cross_entropy<exact>(logits, classes)),
      "classes are indices"));
  visit(listed<SoftmaxOfRows<1, false>, SameTypes<1, double, float>, DimsOf<2>>(
      "softmax(x, dim<1>{}); rows are not sharded",
      [](const auto& x) { return call_op(SoftmaxOfRows<1, false>{}, x); }));
  visit(listed<SoftmaxOfRows<0, true>, SameTypes<1, double>, DimsOf<2>>(
      "log_softmax(x, dim<0>{}); rows are not sharded",
      [](const auto& x) { return call_op(SoftmaxOfRows<0, true>{}, x); }));
  visit(listed<OneHot<double>, SameTypes<1, Int>, DimsOf<1>>(
      "one_hot<double>(classes, 4)", [](const auto& x) { return one_hot<double>(x, 4); },
      "classes are indices"));
}

}  // namespace cleave::ops::listing
