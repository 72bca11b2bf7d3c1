// Compares modules with stored values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "models.hpp"

namespace cleave::testing {

/// Sets all parameters from one list of numbers.
inline void set_parameters(const auto& m, const std::vector<double>& values) {
  std::size_t at = 0;
  nn::parameters(m, [&](const auto& x) {
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = values.at(at++);
  });
  CHECK(at == values.size());
}

struct Expected {
  const std::vector<double>&parameters, &result, &gradients, &input_gradient;
};

/// 1e-12 of the largest value.
inline double tolerance_of(const std::vector<double>& values) {
  double largest = 1;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return 1e-12 * largest;
}

/// Checks the result and the gradients of sum(y * y) for a module whose parameters are set.
inline void check_against(const Expected& expected, const auto& module, const auto& input) {
  const auto m = requires_grad(module);
  const auto x = requires_grad(input);
  const auto y = m(x);
  CHECK(distance(whole(y.value()), expected.result.data()) < 1e-13);
  backward(sum(y * y));
  CHECK(distance(whole(grad(x)), expected.input_gradient.data()) <
        tolerance_of(expected.input_gradient));
  std::size_t at = 0;
  nn::parameters(m, [&](const auto& p) {
    const auto g = whole(grad(p));
    CHECK(distance(g, expected.gradients.data() + at) < tolerance_of(expected.gradients));
    at += std::size_t(g.size());
  });
  CHECK(at == expected.gradients.size());
}

}  // namespace cleave::testing
