#pragma once

#include <cleave/ops/elementwise/activations.hpp>

#include "../list/listed.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// An elementwise function of real numbers.
template <class F>
Naive by_real(F f) {
  return by_element([f](const Elements& x) { return Number64(f(re(x[0]))); });
}

/// erf by its series, or by a continued fraction where the series would need too many terms.
inline double naive_erf(double x) {
  constexpr double pi = 3.14159265358979323846;
  if (std::fabs(x) < 3) {
    double term = x, sum = x;
    for (int n = 1; n < 100; ++n) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / std::sqrt(pi) * sum;
  }
  double fraction = 0;
  for (int n = 60; n > 0; --n) fraction = n / 2.0 / (std::fabs(x) + fraction);
  const double rest = std::exp(-x * x) / std::sqrt(pi) / (std::fabs(x) + fraction);
  return std::copysign(1 - rest, x);
}
inline double naive_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double naive_normal(double x) { return (1 + naive_erf(x / std::sqrt(2.0))) / 2; }
inline double naive_softplus(double x) { return x > 20 ? x : std::log(1 + std::exp(x)); }

inline Naive naive_of(ops::Erf) { return by_real(naive_erf); }
inline Naive naive_of(ops::Erfc) {
  return by_real([](double x) { return 1 - naive_erf(x); });
}
inline Naive naive_of(ops::Gelu) {
  return by_real([](double x) { return x == -INFINITY ? NAN : x * naive_normal(x); });
}
inline Naive naive_of(detail::Slope<ops::Gelu>) {
  return by_real([](double x) {
    return naive_normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
  });
}
inline Naive naive_of(ops::GeluTanh) {
  return by_real([](double x) {
    const double root = std::sqrt(2 / 3.14159265358979323846);
    return x / 2 * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
  });
}
inline Naive naive_of(ops::Silu) {
  return by_real([](double x) { return x * naive_sigmoid(x); });
}
inline Naive naive_of(ops::Softplus) { return by_real(naive_softplus); }
inline Naive naive_of(ops::Mish) {
  return by_real([](double x) { return x * std::tanh(naive_softplus(x)); });
}
inline Naive naive_of(ops::LogSigmoid) {
  return by_real([](double x) { return std::log(naive_sigmoid(x)); });
}
inline Naive naive_of(ops::Softsign) {
  return by_real([](double x) { return x / (1 + std::fabs(x)); });
}
inline Naive naive_of(ops::LeakyRelu) {
  return by_real([](double x) { return x < 0 ? x / 100 : x; });
}
inline Naive naive_of(ops::Elu) {
  return by_real([](double x) { return x < 0 ? std::exp(x) - 1 : x; });
}
inline Naive naive_of(ops::Hardtanh) {
  return by_real([](double x) { return std::fmax(-1, std::fmin(1, x)); });
}
inline Naive naive_of(ops::Hardsigmoid) {
  return by_real([](double x) { return std::fmax(0, std::fmin(6, x + 3)) / 6; });
}
inline Naive naive_of(ops::Hardswish) {
  return by_real([](double x) { return x * std::fmax(0, std::fmin(6, x + 3)) / 6; });
}

}  // namespace cleave::testing
