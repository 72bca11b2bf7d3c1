#pragma once

#include <cleave/ops/elementwise/trigonometry.hpp>

#include "../list/listed.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Sin) {
  return by_element([](const Elements& x) { return std::sin(x[0]); });
}
inline Naive naive_of(ops::Cos) {
  return by_element([](const Elements& x) { return std::cos(x[0]); });
}
inline Naive naive_of(ops::Tan) {
  return by_element([](const Elements& x) { return std::sin(x[0]) / std::cos(x[0]); });
}
inline Naive naive_of(ops::Asin) {
  return by_element(
      [](const Elements& x) {
        return Number64(std::atan2(re(x[0]), std::sqrt(1 - re(x[0]) * re(x[0]))));
      },
      {Domain::unit});
}
inline Naive naive_of(ops::Acos) {
  return by_element(
      [](const Elements& x) {
        return Number64(std::atan2(std::sqrt(1 - re(x[0]) * re(x[0])), re(x[0])));
      },
      {Domain::unit});
}
inline Naive naive_of(ops::Atan) {
  return by_element([](const Elements& x) { return Number64(std::atan2(re(x[0]), 1)); });
}
inline Naive naive_of(ops::Sinh) {
  return by_element([](const Elements& x) { return (std::exp(x[0]) - std::exp(-x[0])) / 2.0; });
}
inline Naive naive_of(ops::Cosh) {
  return by_element([](const Elements& x) { return (std::exp(x[0]) + std::exp(-x[0])) / 2.0; });
}
inline Naive naive_of(ops::Asinh) {
  return by_element([](const Elements& x) {
    const double size = std::fabs(re(x[0]));
    return Number64(std::copysign(std::log(size + std::sqrt(size * size + 1)), re(x[0])));
  });
}
inline Naive naive_of(ops::Acosh) {
  return by_element(
      [](const Elements& x) {
        return Number64(std::log(re(x[0]) + std::sqrt(re(x[0]) * re(x[0]) - 1)));
      },
      {Domain::above_one});
}
inline Naive naive_of(ops::Atanh) {
  return by_element(
      [](const Elements& x) { return Number64(std::log((1 + re(x[0])) / (1 - re(x[0]))) / 2); },
      {Domain::unit});
}
inline Naive naive_of(ops::Atan2) {
  return by_element(
      [](const Elements& x) { return Number64(std::arg(Number64(re(x[1]), re(x[0])))); });
}

}  // namespace cleave::testing
