#pragma once

#include <cleave/ops/elementwise/powers.hpp>

#include "../list/listed.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Number64 naive_power(const Number64& a, const Number64& b) {
  return a.imag() == 0 && b.imag() == 0 ? Number64(std::pow(re(a), re(b))) : std::pow(a, b);
}

inline Naive naive_of(ops::Pow) {
  return by_element([](const Elements& x) { return naive_power(x[0], x[1]); }, {Domain::positive});
}
inline Naive naive_of(detail::PowSlope<1>) {
  return by_element(
      [](const Elements& x) {
        return x[1] == Number64(0) ? x[1] : x[1] * naive_power(x[0], x[1] - 1.0);
      },
      {Domain::positive});
}
inline Naive naive_of(detail::TimesLog) {
  return by_element([](const Elements& x) { return x[0] * std::log(x[1]); },
                    {Domain::any, Domain::positive});
}
inline Naive naive_of(ops::Reciprocal) {
  return by_element([](const Elements& x) { return 1.0 / x[0]; }, {Domain::positive});
}
inline Naive naive_of(ops::Rsqrt) {
  return by_element([](const Elements& x) { return 1.0 / std::sqrt(x[0]); }, {Domain::positive});
}
inline Naive naive_of(ops::Exp2) {
  return by_element([](const Elements& x) { return Number64(std::pow(2.0, re(x[0]))); });
}
inline Naive naive_of(ops::Expm1) {
  return by_element([](const Elements& x) { return Number64(std::exp(re(x[0])) - 1); });
}
inline Naive naive_of(ops::Log1p) {
  return by_element([](const Elements& x) { return Number64(std::log(1 + re(x[0]))); },
                    {Domain::positive});
}
inline Naive naive_of(ops::Log2) {
  return by_element([](const Elements& x) { return Number64(std::log(re(x[0])) / std::log(2.0)); },
                    {Domain::positive});
}
inline Naive naive_of(ops::Log10) {
  return by_element([](const Elements& x) { return Number64(std::log(re(x[0])) / std::log(10.0)); },
                    {Domain::positive});
}
inline Naive naive_of(ops::Hypot) {
  return by_element([](const Elements& x) {
    return Number64(std::sqrt(re(x[0]) * re(x[0]) + re(x[1]) * re(x[1])));
  });
}
inline Naive naive_of(ops::LogAddExp) {
  return by_element([](const Elements& x) {
    return Number64(std::log(std::exp(re(x[0])) + std::exp(re(x[1]))));
  });
}

}  // namespace cleave::testing
