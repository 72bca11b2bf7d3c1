#pragma once

#include "../list/elementwise.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Add) {
  return by_element([](const Elements& x) { return x[0] + x[1]; });
}
inline Naive naive_of(ops::Sub) {
  return by_element([](const Elements& x) { return x[0] - x[1]; });
}
inline Naive naive_of(ops::Mul) {
  return by_element([](const Elements& x) { return x[0] * x[1]; });
}
inline Naive naive_of(ops::Div) {
  return by_element([](const Elements& x) { return x[0] / x[1]; }, {Domain::any, Domain::positive});
}
inline Naive naive_of(ops::Maximum) {
  return by_element([](const Elements& x) { return re(x[0]) > re(x[1]) ? x[0] : x[1]; });
}
inline Naive naive_of(ops::Minimum) {
  return by_element([](const Elements& x) { return re(x[0]) < re(x[1]) ? x[0] : x[1]; });
}
inline Naive naive_of(detail::ShareOfLarger) {
  return by_element([](const Elements& x) {
    return Number64(re(x[0]) > re(x[1]) ? 1 : re(x[0]) < re(x[1]) ? 0 : 0.5);
  });
}
inline Naive naive_of(ops::Equals) {
  return by_element([](const Elements& x) { return Number64(x[0] == x[1] ? 1 : 0); });
}

}  // namespace cleave::testing
