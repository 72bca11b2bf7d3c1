#pragma once

#include "../list/elementwise.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Neg) {
  return by_element([](const Elements& x) { return -x[0]; });
}
inline Naive naive_of(ops::Square) {
  return by_element([](const Elements& x) { return x[0] * x[0]; });
}
inline Naive naive_of(ops::Abs) {
  return by_element([](const Elements& x) { return Number64(std::abs(x[0])); });
}
inline Naive naive_of(ops::Sign) {
  return by_element(
      [](const Elements& x) { return x[0] == Number64(0) ? Number64(0) : x[0] / std::abs(x[0]); });
}
inline Naive naive_of(ops::Conj) {
  return by_element([](const Elements& x) { return std::conj(x[0]); });
}
inline Naive naive_of(ops::Real) {
  return by_element([](const Elements& x) { return Number64(x[0].real()); });
}
inline Naive naive_of(ops::Relu) {
  return by_element([](const Elements& x) { return Number64(std::fmax(re(x[0]), 0)); });
}
inline Naive naive_of(detail::WherePositive) {
  return by_element([](const Elements& x) { return re(x[0]) > 0 ? x[1] : Number64(0); });
}
inline Naive naive_of(ops::Exp) {
  return by_element([](const Elements& x) { return std::exp(x[0]); });
}
inline Naive naive_of(ops::Log) {
  return by_element([](const Elements& x) { return std::log(x[0]); }, {Domain::positive});
}
inline Naive naive_of(ops::Sqrt) {
  return by_element([](const Elements& x) { return std::sqrt(x[0]); }, {Domain::positive});
}
inline Naive naive_of(ops::Tanh) {
  return by_element([](const Elements& x) { return std::tanh(x[0]); });
}
inline Naive naive_of(ops::Sigmoid) {
  return by_element([](const Elements& x) { return 1.0 / (1.0 + std::exp(-x[0])); });
}
inline Naive naive_of(detail::IsZero) {
  return by_element([](const Elements& x) { return Number64(x[0] == Number64(0) ? 1 : 0); });
}
inline Naive naive_of(detail::OrOne) {
  return by_element([](const Elements& x) { return x[0] == Number64(0) ? Number64(1) : x[0]; });
}
inline Naive naive_of(detail::ProductOfOthers) {
  return by_element(
      [](const Elements& x) {
        if (x[2] == Number64(0)) return x[1] / x[0];
        return x[2] == Number64(1) && x[0] == Number64(0) ? x[1] : Number64(0);
      },
      {Domain::positive, Domain::any, Domain::classes});
}

}  // namespace cleave::testing
