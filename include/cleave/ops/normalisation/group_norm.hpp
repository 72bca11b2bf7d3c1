// Group norm: normalises groups of channels of every image to mean 0 and variance 1.
//
//     // y[S0,S1] = group_norm(x[S0,S1], weight[R,S0], bias[R,S0], 8)     no communication
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/normalisation/layer_norm.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Groups of channels normalised as rows, times a weight and plus a bias per channel.
struct GroupNorm : Composite {
  index_t groups = 1;
  double epsilon = 1e-5;

  static constexpr const char* name = "group_norm";
  template <class X>
  constexpr auto body(const X& x, const auto& weight, const auto& bias) const {
    const Shape shape = shape_of(x);
    const index_t width = shape[1] / groups;  // channels of a group
    const auto split = call_op(Unflatten<1, 2>{{groups, width}}, x);
    const auto rows =
        layer_norm(cleave::detail::flatten_dims<2, X::dims - 1>(split), {.epsilon = epsilon});
    Unflatten<2, X::dims - 1> images;
    images.extent[0] = width;
    for (int d = 2; d < X::dims; ++d) images.extent[std::size_t(d - 1)] = shape[d];
    const auto y = call_op(Flatten<1, 2>{shape[1]}, call_op(images, rows));
    return add(mul(y, of_channels<X::dims>(weight)), of_channels<X::dims>(bias));
  }

 private:
  /// One number per channel, as an array that broadcasts along the dimensions after the channels.
  template <int Dims>
  static constexpr auto of_channels(const auto& numbers) {
    if constexpr (Dims == 2) return numbers;
    else {
      BroadcastDims<(1u << (Dims - 1)) - 2u> op;
      for (index_t& extent : op.extent) extent = 1;
      return call_op(op, numbers);
    }
  }
};

}  // namespace ops

/// Group norm: normalises groups of channels of every image to mean 0 and variance 1, times
/// `weight`, plus `bias`: `group_norm(x, weight, bias, 8, {.epsilon = 1e-6})`.
///
/// @param x       [images, channels, ..]
/// @param weight  [channels]
/// @param bias    [channels]
/// @param groups  must divide the number of channels and be divisible by the number of their shards
/// @collective    every rank of the mesh, if x is Partial, or a dimension after the channels is
///                sharded: it is gathered
/// @throws Error  if `groups` does not divide the number of channels
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto group_norm(const X& x, const W& weight, const B& bias, index_t groups,
                          LayerNormOptions options = {}) {
  detail::require_real<X>();
  static_assert(X::dims >= 2 && W::dims == 1 && B::dims == 1,
                "cleave: group_norm takes x [images, channels, ..], weight and bias [channels]");
  static_assert(std::is_same_v<typename X::value_type, typename W::value_type> &&
                    std::is_same_v<typename X::value_type, typename B::value_type>,
                "cleave: the operands of group_norm have different element types; cast one");
  const index_t channels = shape_of(x)[1];
  if (groups < 1 || channels % groups != 0)
    throw Error("group_norm",
                std::to_string(channels) + " channels are not divisible by " +
                    std::to_string(groups) + " groups",
                detail::context_of(x));
  return call_op<R...>(ops::GroupNorm{{}, groups, options.epsilon}, x, weight, bias);
}
CLEAVE_USAGE(group_norm, "group_norm(x, weight, bias, groups)")

}  // namespace cleave::inline v0
