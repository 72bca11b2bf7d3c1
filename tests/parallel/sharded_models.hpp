// A network for the tests of sharded parameters, and its training.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cleave.hpp>
#include <cleave/nn.hpp>
#include <cleave/parallel/fully_shard.hpp>

#include "ranks.hpp"

namespace cleave::testing {

template <class In = nn::Linear<>, class Layers = std::vector<nn::Mlp<>>, class Head = nn::Linear<>>
struct DeepNet {
  In in;
  Layers layers;
  Head head;
  static constexpr nn::names members{"in", "layers", "head"};

  auto operator()(const auto& x) const {
    auto y = resolve(layers.at(0)(in(x)));
    for (std::size_t i = 1; i < layers.size(); ++i) y = resolve(layers[i](y));
    return head(y);
  }
};
template <class In, class Layers, class Head>
DeepNet(In, Layers, Head) -> DeepNet<In, Layers, Head>;

/// Extents that no number of ranks divides, a bias that is shorter than some meshes are long.
struct Deep {
  static constexpr index_t examples = 12, inputs = 5, width = 7, hidden = 9, outputs = 3;
  static constexpr int steps = 20;
};

inline auto deep_net() {
  return DeepNet{nn::linear<double>(Deep::inputs, Deep::width),
             std::vector(3, nn::mlp<double>(Deep::width, Deep::hidden, Deep::width)),
             nn::linear<double>(Deep::width, Deep::outputs)};
}

/// What the network is to compute, the same on all ranks.
struct Examples {
  Tensor<double, 2> x{std::array<index_t, 2>{Deep::examples, Deep::inputs}};
  Tensor<double, 2> y{std::array<index_t, 2>{Deep::examples, Deep::outputs}};

  Examples() {
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * 37 % 23) / 11 - 1;
    for (index_t i = 0; i < y.size(); ++i) y.data()[i] = double(i * 29 % 17) / 8 - 1;
  }
};

/// The loss of every step of AdamW.
template <class M, class X, class Y>
std::vector<double> losses_of(const M& model, const X& x, const Y& y) {
  auto optimizer = nn::adamw(model, {.learning_rate = 0.02, .weight_decay = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < Deep::steps; ++step) {
    const auto loss = mean(square(model(x) - y));
    zero_grad(model);
    backward(loss);
    optimizer.step(model);
    if constexpr (is_tensor<X>) losses.push_back(loss.value().item());
    else losses.push_back(loss.value().full_tensor().item());
  }
  return losses;
}

/// The losses of one rank alone.
inline std::vector<double> losses_alone(const Examples& data) {
  RandomState state{7, 0};
  return losses_of(requires_grad(nn::make(deep_net(), state)), data.x, data.y);
}

inline double largest_gap(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double off = std::abs(a[i] - b[i]);
    if (!(off <= worst)) worst = off;  // NaN is not close
  }
  return worst;
}

}  // namespace cleave::testing
