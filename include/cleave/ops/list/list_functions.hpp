// Functions of one element.
#pragma once

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/list/listed.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_function(const Visit& visit) {
  using One = DimsOf<2>;
  using All = SameTypes<1, double, float, Complex, Int, bool>;
  using Numbers = SameTypes<1, double, float, Complex, Int>;
  using Ordered = SameTypes<1, double, float, Int, bool>;
  using Fractions = SameTypes<1, double, float, Complex>;
  visit(listed<Neg, All, One>("-x", [](const auto& x) { return -x; }));
  visit(listed<Square, Numbers, One>("square(x)", [](const auto& x) { return square(x); }));
  visit(listed<Abs, Numbers, One>("abs(x)", [](const auto& x) { return abs(x); }));
  visit(listed<Sign, Numbers, One>(
      "sign(x)", [](const auto& x) { return sign(x); }, "piecewise constant for real numbers"));
  visit(listed<Conj, SameTypes<1, Complex>, One>("conj(x)", [](const auto& x) { return conj(x); }));
  visit(listed<Real, SameTypes<1, double, Complex>, One>("real(x)",
                                                         [](const auto& x) { return real(x); }));
  visit(listed<Relu, Ordered, One>("relu(x)", [](const auto& x) { return relu(x); }));
  visit(listed<Exp, Fractions, One>("exp(x)", [](const auto& x) { return exp(x); }));
  visit(listed<Log, Fractions, One>("log(x)", [](const auto& x) { return log(x); }));
  visit(listed<Sqrt, Fractions, One>("sqrt(x)", [](const auto& x) { return sqrt(x); }));
  visit(listed<Tanh, Fractions, One>("tanh(x)", [](const auto& x) { return tanh(x); }));
  visit(listed<Sigmoid, Fractions, One>("sigmoid(x)", [](const auto& x) { return sigmoid(x); }));
  visit(helper<IsZero, All, One>(steps));
  visit(helper<OrOne, Numbers, One>());
  visit(helper<ProductOfOthers, SameTypes<3, double, Complex>, DimsOf<2, 2, 2>>(
      "the number of zeros is a count"));
}

}  // namespace cleave::ops::listing
