// Layers of image networks. Parameters are stored as in PyTorch.
#pragma once

#include <array>
#include <cmath>
#include <type_traits>

#include <cleave/nn/lazy.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/convolutions/pool.hpp>
#include <cleave/ops/normalisation/group_norm.hpp>
#include <cleave/ops/shapes/reshape.hpp>

namespace cleave::inline v0::nn {

namespace detail {

/// Calls f(x, weight, bias, groups, how), without the arguments that the layer lacks.
template <class M, class F>
auto convolved(const M& m, const auto& x, const F& f) {
  const auto call = [&](const auto&... groups) {
    if constexpr (std::is_same_v<decltype(m.bias), None>)
      return f(x, made(m.weight), groups..., m.how);
    else return f(x, made(m.weight), made(m.bias), groups..., m.how);
  };
  if constexpr (std::is_same_v<decltype(m.groups), None>) return call();
  else return call(m.groups);
}

}  // namespace detail

/// 2-D convolution. @see cleave::conv2d
///
///     // y[S0,S1] = conv(x[S0,R])     weight[R,S0], bias[R,S0]: no communication
///     // y[S0,P]  = conv(x[S0,S1])    weight[R,S1], bias[R,R]: reduced where y is used
template <class W = Lazy<float, 4>, class B = Lazy<float, 1>, class Groups = None>
struct Conv2d {
  W weight;       ///< [filters, channels, rows, columns], channels of a group
  B bias;         ///< [filters], or None
  Groups groups;  ///< ChannelGroups or None
  Convolution<2> how;
  static constexpr names members{"weight", "bias", "groups", "how"};

  /// @param x  [images, channels, rows, columns]
  auto operator()(const auto& x) const {
    return detail::convolved(*this, x,
                             [](const auto&... parts) { return cleave::conv2d(parts...); });
  }
};
template <class W, class B, class Groups>
Conv2d(W, B, Groups, Convolution<2>) -> Conv2d<W, B, Groups>;

/// 1-D convolution. @see cleave::conv1d
template <class W = Lazy<float, 3>, class B = Lazy<float, 1>, class Groups = None>
struct Conv1d {
  W weight;  ///< [filters, channels, length]
  B bias;
  Groups groups;
  Convolution<1> how;
  static constexpr names members{"weight", "bias", "groups", "how"};

  /// @param x  [images, channels, length]
  auto operator()(const auto& x) const {
    return detail::convolved(*this, x,
                             [](const auto&... parts) { return cleave::conv1d(parts...); });
  }
};
template <class W, class B, class Groups>
Conv1d(W, B, Groups, Convolution<1>) -> Conv1d<W, B, Groups>;

namespace detail {

constexpr index_t count_of(None) { return 1; }
constexpr index_t count_of(ChannelGroups groups) { return groups.count; }

/// The weight of filters, uniform in ±1/sqrt(number of inputs of a filter).
template <class T, std::size_t N, class Groups>
Lazy<T, int(N) + 2> filters_of(index_t channels, index_t filters,
                               const std::array<index_t, N>& size, const Groups& groups) {
  Lazy<T, int(N) + 2> weight{{filters, channels / count_of(groups)}};
  double inputs = double(weight.extents[1]);
  for (std::size_t d = 0; d < N; ++d) {
    weight.extents[2 + d] = size[d];
    inputs *= double(size[d]);
  }
  const double bound = inputs > 0 ? 1 / std::sqrt(inputs) : 0;
  weight.initializer = uniform(-bound, bound);
  return weight;
}

}  // namespace detail

/// Filters of `size` whose weight and bias are uniform in ±1/sqrt(channels of a group · size):
/// `conv2d(3, 16, {3, 3}, {.padding = {1, 1}})`.
///
/// @param groups  ChannelGroups{n}, or None
template <class T = float, class Groups = None>
Conv2d<Lazy<T, 4>, Lazy<T, 1>, Groups> conv2d(index_t channels, index_t filters,
                                              std::array<index_t, 2> size,
                                              const Convolution<2>& how = {}, Groups groups = {}) {
  const auto weight = detail::filters_of<T>(channels, filters, size, groups);
  return {weight, {{filters}, weight.initializer}, groups, how};
}
/// Filters of `length`, initialised as those of `conv2d`.
template <class T = float, class Groups = None>
Conv1d<Lazy<T, 3>, Lazy<T, 1>, Groups> conv1d(index_t channels, index_t filters, index_t length,
                                              const Convolution<1>& how = {}, Groups groups = {}) {
  const auto weight =
      detail::filters_of<T>(channels, filters, std::array<index_t, 1>{length}, groups);
  return {weight, {{filters}, weight.initializer}, groups, how};
}

/// Normalises groups of channels to mean 0 and variance 1, then applies weight and bias.
/// @see cleave::group_norm
template <class W = Lazy<float, 1>, class B = Lazy<float, 1>>
struct GroupNorm {
  W weight;  ///< [channels]
  B bias;    ///< [channels]
  index_t groups;
  double epsilon;
  static constexpr names members{"weight", "bias", "groups", "epsilon"};

  /// @param x  [images, channels, ..]
  auto operator()(const auto& x) const {
    return cleave::group_norm(x, detail::made(weight), detail::made(bias), groups,
                              {.epsilon = epsilon});
  }
};
template <class T = float>
GroupNorm<Lazy<T, 1>, Lazy<T, 1>> group_norm(index_t groups, index_t channels,
                                             double epsilon = 1e-5) {
  return {{{channels}, constant(1)}, {{channels}, constant(0)}, groups, epsilon};
}

/// The largest element of every window. @see cleave::max_pool2d
struct MaxPool2d {
  Pooling<2> how;
  static constexpr names members{"how"};
  auto operator()(const auto& x) const { return max_pool2d(x, how); }
};
/// The mean of every window. @see cleave::avg_pool2d
struct AvgPool2d {
  Pooling<2> how;
  static constexpr names members{"how"};
  auto operator()(const auto& x) const { return avg_pool2d(x, how); }
};

/// Flattens images to rows: [images, ..] to [images, elements].
struct Flatten {
  static constexpr names<0> members{};
  template <class X>
  auto operator()(const X& x) const {
    return cleave::detail::flatten_dims<1, X::dims - 1>(x);
  }
};

}  // namespace cleave::inline v0::nn
