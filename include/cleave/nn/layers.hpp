// Layers. Parameters are stored as in PyTorch, so that checkpoints are interchangeable.
#pragma once

#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/nn/lazy.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/parameter_placements.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/ops/products/linear.hpp>

namespace cleave::inline v0::nn {

/// y = x W^T + b.
///
///     // y[S0,S1] = x[S0,R]  W[R,S0]^T + b[R,S0]     columns: no communication
///     // y[S0,P]  = x[S0,S1] W[R,S1]^T + b[R,R]      rows: reduced where y is used or placed
template <class W = Lazy<float, 2>, class B = Lazy<float, 1>>
struct Linear {
  W weight;  ///< [outputs, inputs]
  B bias;    ///< [outputs], or None
  static constexpr names members{"weight", "bias"};
  using colwise = Cut<Replicate, Shard<0>, Shard<0>>;
  using rowwise = Cut<Shard<-1>, Shard<1>, Replicate>;

  /// @param x  [.., inputs]
  auto operator()(const auto& x) const {
    if constexpr (std::is_same_v<B, None>) return cleave::linear(x, detail::made(weight));
    else return cleave::linear(x, detail::made(weight), detail::made(bias));
  }
};
template <class W, class B>
Linear(W, B) -> Linear<W, B>;

namespace detail {

template <class T>
Lazy<T, 2> linear_weight(index_t inputs, index_t outputs) {
  const double bound = inputs > 0 ? 1 / std::sqrt(double(inputs)) : 0;
  return {{outputs, inputs}, uniform(-bound, bound)};
}

}  // namespace detail

/// A linear layer whose weight and bias are uniform in ±1/sqrt(inputs).
template <class T = float>
Linear<Lazy<T, 2>, Lazy<T, 1>> linear(index_t inputs, index_t outputs) {
  const Lazy<T, 2> weight = detail::linear_weight<T>(inputs, outputs);
  return {weight, {{outputs}, weight.initializer}};
}
/// The same without a bias.
template <class T = float>
Linear<Lazy<T, 2>, None> linear(index_t inputs, index_t outputs, None) {
  return {detail::linear_weight<T>(inputs, outputs), {}};
}

struct Relu {
  static constexpr names<0> members{};
  auto operator()(const auto& x) const { return relu(x); }
};
struct Gelu {
  static constexpr names<0> members{};
  auto operator()(const auto& x) const { return gelu(x); }
};
struct Silu {
  static constexpr names<0> members{};
  auto operator()(const auto& x) const { return silu(x); }
};
struct Tanh {
  static constexpr names<0> members{};
  auto operator()(const auto& x) const { return tanh(x); }
};
struct Sigmoid {
  static constexpr names<0> members{};
  auto operator()(const auto& x) const { return sigmoid(x); }
};

/// Calls layers one after the other; their names are numbers: "0.weight".
template <class... M>
struct Sequential {
  std::tuple<M...> layers;
  static constexpr names members{""};

  auto operator()(const auto& x) const { return from<0>(x); }

 private:
  template <std::size_t I>
  auto from(const auto& x) const {
    if constexpr (I == sizeof...(M)) return x;
    else return from<I + 1>(std::get<I>(layers)(x));
  }
};
template <class... M, class... N>
struct Rebind<Sequential<M...>, Types<std::tuple<N...>>> {
  using type = Sequential<N...>;
};
template <class... M>
Sequential<M...> sequential(M... layers) {
  return {std::tuple<M...>{std::move(layers)...}};
}

/// Two linear layers with an activation between them.
template <class Up = Linear<>, class F = Relu, class Down = Linear<>>
struct Mlp {
  Up up;
  F activation;
  Down down;
  static constexpr names members{"up", "activation", "down"};

  auto operator()(const auto& x) const { return down(activation(up(x))); }
};
template <class Up, class F, class Down>
Mlp(Up, F, Down) -> Mlp<Up, F, Down>;
template <class T = float, class F = Relu>
auto mlp(index_t inputs, index_t hidden, index_t outputs, F activation = {}) {
  using Layer = Linear<Lazy<T, 2>, Lazy<T, 1>>;
  return Mlp<Layer, F, Layer>{linear<T>(inputs, hidden), activation, linear<T>(hidden, outputs)};
}

/// Normalises over the last dimension to mean 0 and variance 1, then applies weight and bias.
template <class W = Lazy<float, 1>, class B = Lazy<float, 1>>
struct LayerNorm {
  W weight;
  B bias;
  double epsilon;
  static constexpr names members{"weight", "bias", "epsilon"};

  auto operator()(const auto& x) const {
    const LayerNormOptions options{epsilon};
    if constexpr (std::is_same_v<B, None>)
      return cleave::layer_norm(x, detail::made(weight), options);
    else return cleave::layer_norm(x, detail::made(weight), detail::made(bias), options);
  }
};
template <class T = float>
LayerNorm<Lazy<T, 1>, Lazy<T, 1>> layer_norm(index_t extent, double epsilon = 1e-5) {
  return {{{extent}, constant(1)}, {{extent}, constant(0)}, epsilon};
}

/// Divides by the root mean square over the last dimension, then applies weight.
template <class W = Lazy<float, 1>>
struct RmsNorm {
  W weight;
  double epsilon;
  static constexpr names members{"weight", "epsilon"};

  auto operator()(const auto& x) const {
    return cleave::rms_norm(x, detail::made(weight), RmsNormOptions{epsilon});
  }
};
template <class T = float>
RmsNorm<Lazy<T, 1>> rms_norm(index_t extent, double epsilon = 1e-6) {
  return {{{extent}, constant(1)}, epsilon};
}

}  // namespace cleave::inline v0::nn
