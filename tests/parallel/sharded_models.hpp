// A network for tests of sharded parameters, and its training.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cleave.hpp>
#include <cleave/nn.hpp>
#include <cleave/parallel/fully_shard.hpp>

#include "ranks.hpp"

namespace cleave::testing {

using axes::dp;

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

/// Extents that no number of ranks divides, and a bias that is shorter than some meshes.
struct Deep {
  static constexpr index_t examples = 12, inputs = 5, width = 7, hidden = 9, outputs = 3;
  static constexpr int steps = 20;
};

inline auto deep_net() {
  return DeepNet{nn::linear<double>(Deep::inputs, Deep::width),
                 std::vector(3, nn::mlp<double>(Deep::width, Deep::hidden, Deep::width)),
                 nn::linear<double>(Deep::width, Deep::outputs)};
}

/// Shards a network over an axis, with one group per layer.
template <class Net, class Mesh, class Axis, class... Options>
auto shard_by_layer(const Net& net, const Mesh& mesh, Axis axis, const Options&... options) {
  return fully_shard(net, mesh, axis, options..., "in"_path, "layers.*"_path, "head"_path);
}

/// Places a network on dp x tp, with the layers sharded by columns and then by rows over tp.
template <class Net, class Mesh>
auto over_tp(const Net& recipe, const Mesh& mesh) {
  const auto layer = [&](const auto& mlp) {
    const auto up = nn::place(mlp.up, mesh, Replicate{}, Shard<0>{});
    const auto weight = nn::place(mlp.down.weight, mesh, Replicate{}, Shard<1>{});
    return nn::Mlp{up, mlp.activation, nn::Linear{weight, nn::place(mlp.down.bias, mesh)}};
  };
  const auto in = nn::place(recipe.in, mesh);
  std::vector layers{layer(recipe.layers[0])};
  for (std::size_t i = 1; i < recipe.layers.size(); ++i) layers.push_back(layer(recipe.layers[i]));
  return DeepNet{in, layers, nn::place(recipe.head, mesh)};
}

/// Layers of one parameter each.
template <class Layers>
struct Chain {
  Layers layers;
  static constexpr nn::names members{"layers"};

  auto operator()(const auto& x) const { return first(x, layers.size()); }
  /// Applies only the first `count` layers.
  auto first(const auto& x, std::size_t count) const {
    auto y = layers.at(0)(x);
    for (std::size_t i = 1; i < count; ++i) y = relu(layers[i](y));
    return y;
  }
};
template <class Layers>
Chain(Layers) -> Chain<Layers>;

inline auto chain(int depth, index_t extent) {
  return Chain{std::vector(std::size_t(depth), nn::linear<double>(extent, extent, nn::None{}))};
}

/// Input rows for a chain, sharded over the mesh.
template <class Mesh>
auto input_rows(const Mesh& mesh, index_t count, index_t extent) {
  Tensor<double, 2> x({count, extent});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * 31 % 13) / 6 - 1;
  return distribute_tensor(x, mesh, Shard<0>{});
}

/// Runs body(world, model, x) on two ranks with a chain of 6 x 6 layers, each of which is a group.
template <class Body>
void on_sharded_chain(int depth, const Body& body) {
  on_ranks({2}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    manual_seed(world, 3);
    const auto model = requires_grad(fully_shard(chain(depth, 6), mesh, dp{}, "layers.*"_path));
    body(world, model, input_rows(mesh, 4, 6));
  });
}

/// Inputs and targets for the network, the same on all ranks.
struct Examples {
  Tensor<double, 2> x{std::array<index_t, 2>{Deep::examples, Deep::inputs}};
  Tensor<double, 2> y{std::array<index_t, 2>{Deep::examples, Deep::outputs}};

  Examples() {
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * 37 % 23) / 11 - 1;
    for (index_t i = 0; i < y.size(); ++i) y.data()[i] = double(i * 29 % 17) / 8 - 1;
  }
};

/// The examples, placed on a mesh.
template <class Mesh, class... P>
auto examples_on(const Mesh& mesh, P... on) {
  const Examples data;
  return std::pair{distribute_tensor(data.x, mesh, on...), distribute_tensor(data.y, mesh, on...)};
}

/// The loss of every step of training with AdamW.
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

/// The losses of training on one rank.
inline std::vector<double> losses_alone() {
  const Examples data;
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
