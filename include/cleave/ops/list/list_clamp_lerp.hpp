// Elementwise operations with three operands.
#pragma once

#include <cleave/ops/elementwise/clamp_lerp.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_clamp_lerp(const Visit& visit) {
  using Three = DimsOf<2, 2, 2>;
  using Real = SameTypes<3, double>;
  using Ordered = SameTypes<3, double, Int>;
  visit(listed<Clamp, Ordered, Three>(
      "clamp(x, low, high)",
      [](const auto& x, const auto& low, const auto& high) { return clamp(x, low, high); }));
  visit(helper<ClampShare<0>, Real, Three>(steps));
  visit(listed<Lerp, SameTypes<3, double, Complex>, Three>(
      "lerp(a, b, weight)",
      [](const auto& a, const auto& b, const auto& weight) { return lerp(a, b, weight); }));
  const auto product = [](const auto& a, const auto& b, const auto& c) {
    return addcmul(a, b, c, 3);
  };
  const auto quotient = [](const auto& a, const auto& b, const auto& c) {
    return addcdiv(a, b, c, 3);
  };
  visit(listed<Addcmul<double>, Real, Three>("addcmul(a, b, c, 3)", product));
  visit(listed<Addcmul<Complex>, SameTypes<3, Complex>, Three>("addcmul(a, b, c, 3)", product));
  visit(listed<Addcdiv<double>, Real, Three>("addcdiv(a, b, c, 3)", quotient));
  visit(listed<Addcdiv<Complex>, SameTypes<3, Complex>, Three>("addcdiv(a, b, c, 3)", quotient));
}

}  // namespace cleave::ops::listing
