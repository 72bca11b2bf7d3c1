// A network of two layers with cross-entropy, once with operations and once with plain loops.
// Gradients are compared with finite differences of the loops.
#pragma once

#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/grad.hpp>

namespace cleave::testing {

/// Reproducible numbers in [-0.5, 0.5).
template <std::size_t Rank>
Tensor<double, int(Rank)> noise(const std::array<index_t, Rank>& extents, unsigned seed) {
  Tensor<double, int(Rank)> x(extents);
  for (index_t i = 0; i < x.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    x.data()[i] = double(seed >> 8) / double(1 << 24) - 0.5;
  }
  return x;
}

struct Network {
  constexpr auto operator()(const auto& x, const auto& w1, const auto& b1, const auto& w2,
                            const auto& classes) const {
    const auto hidden = relu(matmul(x, w1) + b1);
    return cross_entropy(matmul(hidden, w2), classes);
  }
};

/// The inputs and parameters of the network on one device.
struct Example {
  Tensor<double, 2> x, w1;
  Tensor<double, 1> b1;
  Tensor<double, 2> w2;
  Tensor<index_t, 1> classes;

  explicit Example(index_t n = 7, index_t d = 5, index_t h = 6, index_t c = 5)
      : x(noise<2>({n, d}, 1)),
        w1(noise<2>({d, h}, 2)),
        b1(noise<1>({h}, 3)),
        w2(noise<2>({h, c}, 4)),
        classes({n}) {
    for (index_t i = 0; i < n; ++i) classes(i) = (3 * i + 1) % c;
  }

  /// The loss by plain loops.
  double loss() const {
    const index_t n = x.extent(0), d = x.extent(1), h = w1.extent(1), c = w2.extent(1);
    double total = 0;
    for (index_t i = 0; i < n; ++i) {
      std::vector<double> hidden, logits;
      for (index_t j = 0; j < h; ++j) {
        double sum = b1(j);
        for (index_t k = 0; k < d; ++k) sum += x(i, k) * w1(k, j);
        hidden.push_back(sum > 0 ? sum : 0);
      }
      double scale = 0;
      for (index_t j = 0; j < c; ++j) {
        double sum = 0;
        for (index_t k = 0; k < h; ++k) sum += hidden[std::size_t(k)] * w2(k, j);
        logits.push_back(sum);
        scale += std::exp(sum);
      }
      total -= logits[std::size_t(classes(i))] - std::log(scale);
    }
    return total / double(n);
  }

  /// The derivative of the loss in the elements of one argument, by central differences.
  std::vector<double> slopes(double* elements, index_t count) const {
    constexpr double step = 1e-6;
    std::vector<double> result;
    for (index_t i = 0; i < count; ++i) {
      const double value = elements[i];
      elements[i] = value + step;
      const double above = loss();
      elements[i] = value - step;
      const double below = loss();
      elements[i] = value;
      result.push_back((above - below) / (2 * step));
    }
    return result;
  }
};

/// Compares elements with expected ones.
template <class T, int Rank>
void check_close(const Tensor<T, Rank>& found, const std::vector<double>& expected,
                 double tolerance = 1e-8) {
  REQUIRE(found.size() == index_t(expected.size()));
  const Tensor<T, Rank> dense = found.clone();
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::fmax(worst, std::abs(dense.data()[i] - expected[i]));
  CHECK(worst <= tolerance);
}

template <class T, int Rank>
std::vector<double> values_of(const Tensor<T, Rank>& x) {
  const Tensor<T, Rank> dense = x.clone();
  return {dense.data(), dense.data() + dense.size()};
}

}  // namespace cleave::testing
