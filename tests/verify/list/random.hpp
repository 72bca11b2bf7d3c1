// Operations that draw random numbers.
#pragma once

#include <cleave/ops/random/dropout.hpp>
#include <cleave/ops/random/multinomial.hpp>

#include "listed.hpp"

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_random(const Visit& visit) {
  visit(listed<Dropout, SameTypes<1, double, float, Complex>, DimsOf<2>>(
      CLEAVE_CALL_1(x, dropout(x, 0.25))));
  visit(listed<Multinomial, SameTypes<1, double, float>, DimsOf<2>>(
      "multinomial(weights, 2)", [](const auto& x) { return multinomial(x, 2); }, of_integers));
}

}  // namespace cleave::ops::listing
