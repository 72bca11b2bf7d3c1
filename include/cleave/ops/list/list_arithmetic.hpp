// Elementwise operations with two operands.
#pragma once

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/list/listed.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_arithmetic(const Visit& visit) {
  using Two = DimsOf<2, 2>;
  using All = SameTypes<2, double, float, Complex, Int, bool>;
  using Numbers = SameTypes<2, double, float, Complex, Int>;
  using Ordered = SameTypes<2, double, float, Int, bool>;
  visit(listed<Add, All, Two>("a + b", [](const auto& a, const auto& b) { return a + b; }));
  visit(listed<Add, SameTypes<2, double>, DimsOf<2, 1>>(
      "a + b; b broadcasts", [](const auto& a, const auto& b) { return a + b; }));
  visit(listed<Sub, All, Two>("a - b", [](const auto& a, const auto& b) { return a - b; }));
  visit(listed<Mul, All, Two>("a * b", [](const auto& a, const auto& b) { return a * b; }));
  visit(listed<Div, Numbers, Two>("a / b", [](const auto& a, const auto& b) { return a / b; }));
  visit(listed<Maximum, Ordered, Two>("maximum(a, b)",
                                      [](const auto& a, const auto& b) { return maximum(a, b); }));
  visit(listed<Minimum, Ordered, Two>("minimum(a, b)",
                                      [](const auto& a, const auto& b) { return minimum(a, b); }));
  visit(helper<ShareOfLarger, SameTypes<2, double, float>, Two>(steps));
  visit(listed<Equals, All, Two>(
      "equals(a, b)", [](const auto& a, const auto& b) { return equals(a, b); }, steps));
}

}  // namespace cleave::ops::listing
