// Comparisons, logic and classification.
#pragma once

#include <cleave/ops/elementwise/comparisons.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_comparison(const Visit& visit) {
  using One = DimsOf<2>;
  using Two = DimsOf<2, 2>;
  using Ordered = SameTypes<2, double, Int>;
  using All = SameTypes<2, double, Complex>;
  using Truth = SameTypes<2, double, bool>;
  using Fractions = SameTypes<1, double, Complex>;
  visit(listed<Less, Ordered, Two>(
      "a < b", [](const auto& a, const auto& b) { return a < b; }, of_truths));
  visit(listed<LessEqual, Ordered, Two>(
      "a <= b", [](const auto& a, const auto& b) { return a <= b; }, of_truths));
  visit(listed<Greater, Ordered, Two>(
      "a > b", [](const auto& a, const auto& b) { return a > b; }, of_truths));
  visit(listed<GreaterEqual, Ordered, Two>(
      "a >= b", [](const auto& a, const auto& b) { return a >= b; }, of_truths));
  visit(listed<Equal, All, Two>(
      "equal(a, b)", [](const auto& a, const auto& b) { return equal(a, b); }, of_truths));
  visit(listed<NotEqual, All, Two>(
      "not_equal(a, b)", [](const auto& a, const auto& b) { return not_equal(a, b); }, of_truths));
  visit(listed<LogicalAnd, Truth, Two>(
      "logical_and(a, b)", [](const auto& a, const auto& b) { return logical_and(a, b); },
      of_truths));
  visit(listed<LogicalOr, Truth, Two>(
      "logical_or(a, b)", [](const auto& a, const auto& b) { return logical_or(a, b); },
      of_truths));
  visit(listed<LogicalXor, Truth, Two>(
      "logical_xor(a, b)", [](const auto& a, const auto& b) { return logical_xor(a, b); },
      of_truths));
  visit(listed<LogicalNot, SameTypes<1, double, bool>, One>(
      "logical_not(x)", [](const auto& x) { return logical_not(x); }, of_truths));
  visit(
      listed<IsNan, Fractions, One>("isnan(x)", [](const auto& x) { return isnan(x); }, of_truths));
  visit(
      listed<IsInf, Fractions, One>("isinf(x)", [](const auto& x) { return isinf(x); }, of_truths));
  visit(listed<IsFinite, Fractions, One>(
      "isfinite(x)", [](const auto& x) { return isfinite(x); }, of_truths));
}

}  // namespace cleave::ops::listing
