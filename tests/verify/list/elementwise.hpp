// Elementwise operations that no line of their header registers: variants, and operations with
// attributes that are types.
#pragma once

#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "listed.hpp"

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_arithmetic(const Visit& visit) {
  each_registered<topics::arithmetic>(visit);
  visit(listed<Add, SameTypes<2, double>, DimsOf<2, 1>>(
      "a + b; b broadcasts", [](const auto& a, const auto& b) { return a + b; }));
}

template <class Visit>
constexpr void each_function(const Visit& visit) {
  each_registered<topics::unary_arithmetic>(visit);
  each_registered<topics::functions>(visit);
  each_registered<topics::reductions>(visit);
}

template <class Visit>
constexpr void each_choice(const Visit& visit) {
  using One = DimsOf<2>;
  visit(listed<
        Where,
        TypeRows<Types<bool, double, double>, Types<bool, Complex, Complex>, Types<bool, Int, Int>>,
        DimsOf<2, 2, 2>>(CLEAVE_CALL_3(condition, a, b, where(condition, a, b)),
                         "the condition is not differentiable"));
  visit(listed<Cast<double>, SameTypes<1, double, float, Int, bool>, One>(
      CLEAVE_CALL_1(x, cast<double>(x))));
  visit(listed<Cast<float>, SameTypes<1, double, Int>, One>(CLEAVE_CALL_1(x, cast<float>(x))));
  visit(listed<Cast<Complex>, SameTypes<1, double, Complex>, One>(
      "cast<std::complex<double>>(x)", [](const auto& x) { return cast<Complex>(x); }));
  visit(listed<Cast<Int>, SameTypes<1, double, bool>, One>(
      "cast<std::int64_t>(x)", [](const auto& x) { return cast<Int>(x); },
      "integers have no gradient"));
  const auto f = [](const auto& u, const auto& v) { return u * v + u; };
  visit(listed<Map<std::remove_const_t<decltype(f)>>, SameTypes<2, double, Int>, DimsOf<2, 2>>(
      "map(f, a, b)", [f](const auto& a, const auto& b) { return map(f, a, b); }));
}

template <class Visit>
constexpr void each_clamp_lerp(const Visit& visit) {
  using Three = DimsOf<2, 2, 2>;
  using Real = SameTypes<3, double>;
  each_registered<topics::clamp_lerp>(visit);
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
