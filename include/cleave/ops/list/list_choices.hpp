// Selection, casts and user-defined functors.
#pragma once

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_choice(const Visit& visit) {
  using One = DimsOf<2>;
  visit(listed<
        Where,
        TypeRows<Types<bool, double, double>, Types<bool, Complex, Complex>, Types<bool, Int, Int>>,
        DimsOf<2, 2, 2>>(
      "where(condition, a, b)",
      [](const auto& condition, const auto& a, const auto& b) { return where(condition, a, b); },
      "the condition is not differentiable"));
  visit(helper<WherePositive, SameTypes<2, double, float, Int>, DimsOf<2, 2>>(
      "piecewise constant in a"));
  visit(listed<Cast<double>, SameTypes<1, double, float, Int, bool>, One>(
      "cast<double>(x)", [](const auto& x) { return cast<double>(x); }));
  visit(listed<Cast<float>, SameTypes<1, double, Int>, One>(
      "cast<float>(x)", [](const auto& x) { return cast<float>(x); }));
  visit(listed<Cast<Complex>, SameTypes<1, double, Complex>, One>(
      "cast<std::complex<double>>(x)", [](const auto& x) { return cast<Complex>(x); }));
  visit(listed<Cast<Int>, SameTypes<1, double, bool>, One>(
      "cast<std::int64_t>(x)", [](const auto& x) { return cast<Int>(x); },
      "integers have no gradient"));
  const auto f = [](const auto& u, const auto& v) { return u * v + u; };
  visit(listed<Map<std::remove_const_t<decltype(f)>>, SameTypes<2, double, Int>, DimsOf<2, 2>>(
      "map(f, a, b)", [f](const auto& a, const auto& b) { return map(f, a, b); }));
}

}  // namespace cleave::ops::listing
