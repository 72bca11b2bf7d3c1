// The formulas of activation functions for single elements, which may be dual numbers.
#pragma once

#include <cmath>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels::formulas {

template <class V>
using NumberOf = V;

struct Exp {
  CLEAVE_HOST_DEVICE static auto of(const auto& x) {
    using std::exp;
    return exp(x);
  }
};
struct Tanh {
  CLEAVE_HOST_DEVICE static auto of(const auto& x) {
    using std::tanh;
    return tanh(x);
  }
};
struct Erf {
  CLEAVE_HOST_DEVICE static auto of(const auto& x) {
    using std::erf;
    return erf(x);
  }
};

#define CLEAVE_FORMULA CLEAVE_HOST_DEVICE
#include <cleave/kernels/activation_formulas.inc>
#undef CLEAVE_FORMULA

}  // namespace cleave::inline v0::kernels::formulas
