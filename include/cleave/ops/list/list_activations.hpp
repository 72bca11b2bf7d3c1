// Activation functions, and the error function.
#pragma once

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/list/listed.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_activation(const Visit& visit) {
  using One = DimsOf<2>;
  using Real = SameTypes<1, double>;
  using WithFloat = SameTypes<1, double, float>;
  visit(listed<Erf, WithFloat, One>("erf(x)", [](const auto& x) { return erf(x); }));
  visit(listed<Erfc, Real, One>("erfc(x)", [](const auto& x) { return erfc(x); }));
  visit(listed<Gelu, WithFloat, One>("gelu(x)", [](const auto& x) { return gelu(x); }));
  visit(listed<GeluTanh, Real, One>("gelu_tanh(x)", [](const auto& x) { return gelu_tanh(x); }));
  visit(listed<Silu, WithFloat, One>("silu(x)", [](const auto& x) { return silu(x); }));
  visit(listed<Softplus, Real, One>("softplus(x)", [](const auto& x) { return softplus(x); }));
  visit(listed<Mish, Real, One>("mish(x)", [](const auto& x) { return mish(x); }));
  visit(
      listed<LogSigmoid, Real, One>("logsigmoid(x)", [](const auto& x) { return logsigmoid(x); }));
  visit(listed<Softsign, Real, One>("softsign(x)", [](const auto& x) { return softsign(x); }));
  visit(listed<LeakyRelu, Real, One>("leaky_relu(x)", [](const auto& x) { return leaky_relu(x); }));
  visit(listed<Elu, Real, One>("elu(x)", [](const auto& x) { return elu(x); }));
  visit(listed<Hardtanh, Real, One>("hardtanh(x)", [](const auto& x) { return hardtanh(x); }));
  visit(listed<Hardsigmoid, Real, One>("hardsigmoid(x)",
                                       [](const auto& x) { return hardsigmoid(x); }));
  visit(listed<Hardswish, Real, One>("hardswish(x)", [](const auto& x) { return hardswish(x); }));
  visit(helper<Slope<Gelu>, Real, One>());
}

}  // namespace cleave::ops::listing
