// Trigonometric and hyperbolic functions.
#pragma once

#include <cleave/ops/elementwise/trigonometry.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_of_trigonometry(const Visit& visit) {
  using One = DimsOf<2>;
  using Real = SameTypes<1, double>;
  using Fractions = SameTypes<1, double, Complex>;
  using WithFloat = SameTypes<1, double, float, Complex>;
  visit(listed<Sin, WithFloat, One>("sin(x)", [](const auto& x) { return sin(x); }));
  visit(listed<Cos, WithFloat, One>("cos(x)", [](const auto& x) { return cos(x); }));
  visit(listed<Tan, Fractions, One>("tan(x)", [](const auto& x) { return tan(x); }));
  visit(listed<Asin, Real, One>("asin(x)", [](const auto& x) { return asin(x); }));
  visit(listed<Acos, Real, One>("acos(x)", [](const auto& x) { return acos(x); }));
  visit(listed<Atan, Real, One>("atan(x)", [](const auto& x) { return atan(x); }));
  visit(listed<Sinh, Fractions, One>("sinh(x)", [](const auto& x) { return sinh(x); }));
  visit(listed<Cosh, Fractions, One>("cosh(x)", [](const auto& x) { return cosh(x); }));
  visit(listed<Asinh, Real, One>("asinh(x)", [](const auto& x) { return asinh(x); }));
  visit(listed<Acosh, Real, One>("acosh(x)", [](const auto& x) { return acosh(x); }));
  visit(listed<Atanh, Real, One>("atanh(x)", [](const auto& x) { return atanh(x); }));
  visit(listed<Atan2, SameTypes<2, double>, DimsOf<2, 2>>(
      "atan2(a, b)", [](const auto& a, const auto& b) { return atan2(a, b); }));
}

}  // namespace cleave::ops::listing
