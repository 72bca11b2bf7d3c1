// Powers, exponentials and logarithms.
#pragma once

#include <cleave/ops/elementwise/powers.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_power(const Visit& visit) {
  using One = DimsOf<2>;
  using Two = DimsOf<2, 2>;
  using Real = SameTypes<1, double>;
  using RealPair = SameTypes<2, double>;
  using Fractions = SameTypes<1, double, Complex>;
  visit(listed<Pow, SameTypes<2, double, float, Complex>, Two>(
      "pow(a, b)", [](const auto& a, const auto& b) { return pow(a, b); }));
  visit(helper<PowSlope<1>, SameTypes<2, double, Complex>, Two>());
  visit(helper<TimesLog, SameTypes<2, double, Complex>, Two>());
  visit(listed<Reciprocal, Fractions, One>("reciprocal(x)",
                                           [](const auto& x) { return reciprocal(x); }));
  visit(listed<Rsqrt, SameTypes<1, double, float, Complex>, One>(
      "rsqrt(x)", [](const auto& x) { return rsqrt(x); }));
  visit(listed<Exp2, Real, One>("exp2(x)", [](const auto& x) { return exp2(x); }));
  visit(listed<Expm1, Real, One>("expm1(x)", [](const auto& x) { return expm1(x); }));
  visit(listed<Log1p, Real, One>("log1p(x)", [](const auto& x) { return log1p(x); }));
  visit(listed<Log2, Real, One>("log2(x)", [](const auto& x) { return log2(x); }));
  visit(listed<Log10, Real, One>("log10(x)", [](const auto& x) { return log10(x); }));
  visit(listed<Hypot, RealPair, Two>("hypot(a, b)",
                                     [](const auto& a, const auto& b) { return hypot(a, b); }));
  visit(listed<LogAddExp, RealPair, Two>(
      "logaddexp(a, b)", [](const auto& a, const auto& b) { return logaddexp(a, b); }));
}

}  // namespace cleave::ops::listing
