#pragma once

#include <cleave/ops/elementwise/rounding.hpp>

#include "../list/listed.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// An elementwise function of real numbers with fractional parts.
template <class F>
Naive by_fraction(F f) {
  return by_element([f](const Elements& x) { return Number64(f(re(x[0]))); }, {Domain::quarters});
}

inline Naive naive_of(ops::Floor) {
  return by_fraction([](double x) { return std::floor(x); });
}
inline Naive naive_of(ops::Ceil) {
  return by_fraction([](double x) { return -std::floor(-x); });
}
inline Naive naive_of(ops::Round) {
  return by_fraction([](double x) {
    const double low = std::floor(x), rest = x - low;
    return rest > 0.5 || (rest == 0.5 && std::fmod(low, 2) != 0) ? low + 1 : low;
  });
}
inline Naive naive_of(ops::Trunc) {
  return by_fraction([](double x) { return std::copysign(std::floor(std::fabs(x)), x); });
}
inline Naive naive_of(ops::Frac) {
  return by_fraction([](double x) { return x - std::copysign(std::floor(std::fabs(x)), x); });
}
inline Naive naive_of(ops::Fmod) {
  return by_element(
      [](const Elements& x) {
        return Number64(re(x[0]) - std::trunc(re(x[0]) / re(x[1])) * re(x[1]));
      },
      {Domain::quarters, Domain::above_one});
}
inline Naive naive_of(ops::Remainder) {
  return by_element(
      [](const Elements& x) {
        return Number64(re(x[0]) - std::floor(re(x[0]) / re(x[1])) * re(x[1]));
      },
      {Domain::quarters, Domain::above_one});
}

}  // namespace cleave::testing
