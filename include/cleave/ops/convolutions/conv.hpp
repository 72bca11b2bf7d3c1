// Convolutions as PyTorch defines them: filters are not flipped.
//
//     // y[S0,S1,R,R] = conv2d(x[S0,R,R,R], weight[R,S0,R,R])    images over dp, channels over tp
//     // y[S0,P]      = conv2d(x[S0,S1,..], weight[R,S1,..])     the channels of x over tp: a sum
//
// Images, channels, rows and columns may be sharded. Along sharded rows and columns, ranks receive
// what their windows contain of neighbouring shards.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/ops/convolutions/windows.hpp>
#include <cleave/ops/convolutions/windows_by_filters.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/reshape.hpp>

namespace cleave::inline v0 {

/// Stride, padding and dilation in N dimensions: `{.stride = {2, 2}, .padding = {1, 1}}`.
template <int N>
struct Convolution {
  std::array<index_t, std::size_t(N)> stride = to_array<N>(Shape::filled(N, 1));
  std::array<index_t, std::size_t(N)> padding{};  ///< zeros added on both sides
  std::array<index_t, std::size_t(N)> dilation = to_array<N>(Shape::filled(N, 1));
};

/// Groups of channels: channels of the result depend only on channels of x in the same group.
struct ChannelGroups {
  index_t count = 1;
};

namespace ops {

/// A convolution over N dimensions.
template <int N, bool Grouped>
struct Conv : Composite {
  Convolution<N> how{};
  index_t groups = 1;

  static constexpr const char* name = Convolve<N, Grouped>::name;
  static constexpr bool takes_request = true;

  constexpr auto body(const auto& request, const auto& x, const auto& weight,
                      const auto&... bias) const {
    if constexpr (Grouped) {
      const index_t channels = shape_of(weight)[0];
      const auto y = call_op(Convolve<N, true>{}, windows(grouped<1>(x), weight),
                             grouped<0>(weight), grouped<0>(bias)...);
      return cleave::detail::call_as(request, Flatten<1, 2>{channels}, y);
    } else {
      return cleave::detail::call_as(request, Convolve<N, false>{}, windows(x, weight), weight,
                                     bias...);
    }
  }

 private:
  template <int D>
  constexpr auto grouped(const auto& x) const {
    return call_op(Unflatten<D, 2>{{groups, shape_of(x)[D] / groups}}, x);
  }
  constexpr auto windows(const auto& x, const auto& weight) const {
    std::array<Window, std::size_t(N)> window{};
    for (std::size_t i = 0; i < std::size_t(N); ++i)
      window[i] = {shape_of(weight)[2 + int(i)], how.stride[i], how.dilation[i]};
    return cleave::detail::windows_of<2 + Grouped, N, cleave::detail::Around::zeros>(
        name, x, window, how.padding);
  }
};

}  // namespace ops

namespace detail {

/// @throws Error if the channels of x, weight and groups do not match
template <int N, class X, class W, class... B>
constexpr void require_channels(const X& x, const W& weight, index_t groups, const B&...) {
  static_assert(
      X::dims == N + 2 && W::dims == N + 2 && ((B::dims == 1) && ...),
      "cleave: a convolution takes x [images, channels, ..], weight [filters, channels, "
      "..] and bias [filters], with one dimension more for conv1d, two for conv2d, three for "
      "conv3d");
  static_assert(std::is_same_v<typename X::value_type, typename W::value_type> &&
                    (std::is_same_v<typename X::value_type, typename B::value_type> && ...),
                "cleave: the operands of a convolution have different element types; cast one");
  const Shape image = shape_of(x), filter = shape_of(weight);
  const auto fail = [&](const std::string& message) {
    ErrorContext context = context_of(x);
    context.shapes += " and " + to_string(filter);
    throw Error(ops::Conv<N, false>::name, message, context);
  };
  if (groups < 1)
    fail("the number of channel groups must be at least 1, not " + std::to_string(groups));
  if (!knows_extents(x) || !knows_extents(weight)) return;
  if (image[1] % groups != 0 || filter[0] % groups != 0)
    fail(std::to_string(image[1]) + " channels and " + std::to_string(filter[0]) +
         " filters are not divisible by " + std::to_string(groups) + " groups");
  if (image[1] / groups != filter[1])
    fail("x has " + std::to_string(image[1] / groups) + " channels" +
         (groups > 1 ? " per group" : "") + ", but the filters have " + std::to_string(filter[1]));
}

template <int N, class... R, class X, class W, class... B>
constexpr auto convolution(const X& x, const W& weight, const Convolution<N>& how,
                           const B&... bias) {
  require_channels<N>(x, weight, 1, bias...);
  return call_op<R...>(ops::Conv<N, false>{{}, how}, x, weight, bias...);
}
template <int N, class... R, class X, class W, class... B>
constexpr auto convolution(const X& x, const W& weight, ChannelGroups groups,
                           const Convolution<N>& how, const B&... bias) {
  require_channels<N>(x, weight, groups.count, bias...);
  return call_op<R...>(ops::Conv<N, true>{{}, how, groups.count}, x, weight, bias...);
}

}  // namespace detail

/// Two-dimensional convolution, summed over channels, plus a bias per filter:
/// `conv2d(x, weight, bias, {.stride = {2, 2}, .padding = {1, 1}})`.
///
/// @param x       [images, channels, rows, columns]
/// @param weight  [filters, channels, rows, columns]
/// @param bias    [filters]; added once, whatever the placements of the operands
/// @return        [images, filters, rows, columns]: an extent n of x becomes
///                floor((n + 2 padding - span) / stride) + 1, where span = dilation (size - 1) + 1.
///                Partial<Sum> on the axes that shard channels of x
/// @collective    every rank of the mesh, if an operand has to be redistributed, or rows or columns
///                are sharded
/// @cost          memory for the windows of one image as a matrix (on a GPU: of all images).
///                Gradients need the windows of all images, that of x twice
/// @throws Error  if the channels do not match, a filter spans more than the padded image, a stride
///                or a dilation is below 1, or a padding is negative
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv2d(const X& x, const W& weight, const B& bias, const Convolution<2>& how = {}) {
  return detail::convolution<2, R...>(x, weight, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv2d(const X& x, const W& weight, const Convolution<2>& how = {}) {
  return detail::convolution<2, R...>(x, weight, how);
}

/// Grouped convolution: `conv2d(x, weight, bias, ChannelGroups{4})`, with weight [filters,
/// channels / groups, rows, columns]. If channels or filters are sharded and the number of shards
/// does not divide the number of groups, ranks exchange those of their groups that they lack.
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv2d(const X& x, const W& weight, const B& bias, ChannelGroups groups,
                      const Convolution<2>& how = {}) {
  return detail::convolution<2, R...>(x, weight, groups, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv2d(const X& x, const W& weight, ChannelGroups groups,
                      const Convolution<2>& how = {}) {
  return detail::convolution<2, R...>(x, weight, groups, how);
}
CLEAVE_USAGE(conv2d, "conv2d(x, weight), conv2d(x, weight, bias, {.stride = {2, 2}})")

/// Three-dimensional convolution: x [images, channels, layers, rows, columns]. Otherwise as conv2d,
/// without groups.
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv3d(const X& x, const W& weight, const B& bias, const Convolution<3>& how = {}) {
  return detail::convolution<3, R...>(x, weight, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv3d(const X& x, const W& weight, const Convolution<3>& how = {}) {
  return detail::convolution<3, R...>(x, weight, how);
}
CLEAVE_USAGE(conv3d, "conv3d(x, weight), conv3d(x, weight, bias, {.stride = {2, 2, 2}})")

/// One-dimensional convolution: x [images, channels, length], weight [filters, channels, length].
/// Otherwise as conv2d.
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv1d(const X& x, const W& weight, const B& bias, const Convolution<1>& how = {}) {
  return detail::convolution<1, R...>(x, weight, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv1d(const X& x, const W& weight, const Convolution<1>& how = {}) {
  return detail::convolution<1, R...>(x, weight, how);
}
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv1d(const X& x, const W& weight, const B& bias, ChannelGroups groups,
                      const Convolution<1>& how = {}) {
  return detail::convolution<1, R...>(x, weight, groups, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv1d(const X& x, const W& weight, ChannelGroups groups,
                      const Convolution<1>& how = {}) {
  return detail::convolution<1, R...>(x, weight, groups, how);
}
CLEAVE_USAGE(conv1d, "conv1d(x, weight), conv1d(x, weight, bias, {.stride = {2}})")

}  // namespace cleave::inline v0
