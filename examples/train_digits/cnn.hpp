// A convolutional network for digits of 8 x 8 grey values.
#pragma once

#include <cleave/nn.hpp>

namespace digits {

/// Twice: filters of 3 x 3, then max pooling of 2 x 2; then a linear layer.
///
///     // y[S0,R] = cnn(x[S0,R])     filters of the first layer over tp, channels of the second:
///     //                            one all-reduce over tp
template <class First = cleave::nn::Conv2d<>, class Second = cleave::nn::Conv2d<>,
          class Head = cleave::nn::Linear<>>
struct Cnn {
  First first;
  Second second;
  Head head;
  static constexpr cleave::nn::names members{"first", "second", "head"};

  /// @param x  [digits, 64]
  auto operator()(const auto& x) const {
    using namespace cleave;
    const auto images = unflatten(x, dim<1>{}, {1, 8, 8});
    const auto parts = max_pool2d(relu(first(images)), {.size = {2, 2}});
    const auto shapes = max_pool2d(relu(resolve(second(parts))), {.size = {2, 2}});
    return head(flatten(shapes, dim<1, 2, 3>{}));
  }
};
template <class First, class Second, class Head>
Cnn(First, Second, Head) -> Cnn<First, Second, Head>;

/// The network on a mesh of dp x tp ranks.
template <class Mesh>
auto cnn(const Mesh& mesh, cleave::index_t filters) {
  using namespace cleave;
  const auto first = nn::conv2d(1, filters, {3, 3}, {.padding = {1, 1}});
  const auto second = nn::conv2d(filters, 2 * filters, {3, 3}, {.padding = {1, 1}});
  const auto of_first = nn::place(first, mesh, Replicate{}, Shard<0>{});
  const nn::Conv2d of_second{nn::place(second.weight, mesh, Replicate{}, Shard<1>{}),
                             nn::place(second.bias, mesh), second.groups, second.how};
  return Cnn{of_first, of_second, nn::place(nn::linear(2 * filters * 4, 10), mesh)};
}

}  // namespace digits
