// Rounding and remainders.
#pragma once

#include <cleave/ops/elementwise/rounding.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_rounding(const Visit& visit) {
  using One = DimsOf<2>;
  using Two = DimsOf<2, 2>;
  using Real = SameTypes<1, double>;
  using Divisible = SameTypes<2, double, Int>;
  visit(listed<Floor, Real, One>("floor(x)", [](const auto& x) { return floor(x); }, steps));
  visit(listed<Ceil, Real, One>("ceil(x)", [](const auto& x) { return ceil(x); }, steps));
  visit(listed<Round, Real, One>("round(x)", [](const auto& x) { return round(x); }, steps));
  visit(listed<Trunc, Real, One>("trunc(x)", [](const auto& x) { return trunc(x); }, steps));
  visit(listed<Frac, Real, One>("frac(x)", [](const auto& x) { return frac(x); }));
  visit(listed<Fmod, Divisible, Two>("fmod(a, b)",
                                     [](const auto& a, const auto& b) { return fmod(a, b); }));
  visit(listed<Remainder, Divisible, Two>(
      "remainder(a, b)", [](const auto& a, const auto& b) { return remainder(a, b); }));
}

}  // namespace cleave::ops::listing
