#pragma once

#include <cleave/ops/elementwise/comparisons.hpp>

#include "../list/listed.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// An elementwise function that returns true or false.
template <class F>
Naive by_truth(F f) {
  return by_element([f](const Elements& x) { return Number64(f(x) ? 1 : 0); });
}

inline Naive naive_of(ops::Less) {
  return by_truth([](const Elements& x) { return re(x[0]) < re(x[1]); });
}
inline Naive naive_of(ops::LessEqual) {
  return by_truth([](const Elements& x) { return re(x[0]) <= re(x[1]); });
}
inline Naive naive_of(ops::Greater) {
  return by_truth([](const Elements& x) { return re(x[0]) > re(x[1]); });
}
inline Naive naive_of(ops::GreaterEqual) {
  return by_truth([](const Elements& x) { return re(x[0]) >= re(x[1]); });
}
inline Naive naive_of(ops::Equal) {
  return by_truth([](const Elements& x) { return x[0] == x[1]; });
}
inline Naive naive_of(ops::NotEqual) {
  return by_truth([](const Elements& x) { return x[0] != x[1]; });
}
inline Naive naive_of(ops::LogicalAnd) {
  return by_truth([](const Elements& x) { return re(x[0]) != 0 && re(x[1]) != 0; });
}
inline Naive naive_of(ops::LogicalOr) {
  return by_truth([](const Elements& x) { return re(x[0]) != 0 || re(x[1]) != 0; });
}
inline Naive naive_of(ops::LogicalXor) {
  return by_truth([](const Elements& x) { return (re(x[0]) != 0) != (re(x[1]) != 0); });
}
inline Naive naive_of(ops::LogicalNot) {
  return by_truth([](const Elements& x) { return re(x[0]) == 0; });
}
inline Naive naive_of(ops::IsNan) {
  return by_truth(
      [](const Elements& x) { return std::isnan(re(x[0])) || std::isnan(x[0].imag()); });
}
inline Naive naive_of(ops::IsInf) {
  return by_truth(
      [](const Elements& x) { return std::isinf(re(x[0])) || std::isinf(x[0].imag()); });
}
inline Naive naive_of(ops::IsFinite) {
  return by_truth(
      [](const Elements& x) { return std::isfinite(re(x[0])) && std::isfinite(x[0].imag()); });
}

}  // namespace cleave::testing
