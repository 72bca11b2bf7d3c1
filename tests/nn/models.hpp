// Modules used by the tests.
#pragma once

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/nn.hpp>

#include "elements.hpp"

namespace cleave::testing {

/// A vector of modules, buffers, optional parts, a number, and a module of a user-defined type.
template <class Layers = std::vector<nn::Mlp<>>, class Norm = nn::LayerNorm<>,
          class Seen = nn::Buffer<Tensor<index_t, 1>>, class Extra = nn::None,
          class Head = nn::Linear<>>
struct Network {
  Layers layers;
  Norm norm;
  Seen seen;
  Extra extra;
  int repeats;
  Head head;
  bool training = true;
  static constexpr nn::names members{"layers",  "norm", "seen",    "extra",
                                     "repeats", "head", "training"};

  auto operator()(const auto& x) const {
    auto y = layers.at(0)(x);
    for (std::size_t i = 1; i < layers.size(); ++i) y = layers[i](y);
    return head(norm(y));
  }
};

/// A network from 4 to 3 features with `depth` layers.
template <class T>
auto network(int depth) {
  using Part = decltype(nn::mlp<T>(4, 6, 4));
  using Norm = decltype(nn::layer_norm<T>(4));
  using Seen = nn::Buffer<Tensor<index_t, 1>>;
  using Head = decltype(nn::linear<T>(4, 3));
  return Network<std::vector<Part>, Norm, Seen, nn::None, Head>{
      std::vector<Part>(std::size_t(depth), nn::mlp<T>(4, 6, 4)),
      nn::layer_norm<T>(4),
      {Tensor<index_t, 1>({2}, {7, 8})},
      {},
      2,
      nn::linear<T>(4, 3)};
}

}  // namespace cleave::testing
