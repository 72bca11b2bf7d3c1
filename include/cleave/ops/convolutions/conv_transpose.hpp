// Transposed convolutions as PyTorch defines them: the gradients of convolutions with respect to
// their images, which enlarge images.
//
//     // y[S0,S1,R,R] = conv_transpose2d(x[S0,R,R,R], weight[R,S0,R,R])
//     // y[S0,P]      = conv_transpose2d(x[S0,S1,..], weight[S0,R,..])    the channels of x: a sum
//
// Images, channels, rows and columns may be sharded. Along sharded rows and columns, ranks receive
// the elements of neighbouring shards whose windows overlap their part of the result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/convolutions/windows.hpp>
#include <cleave/ops/convolutions/windows_by_filters.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/reshape.hpp>

namespace cleave::inline v0 {

/// Stride, padding, output padding and dilation in N dimensions, of the convolution that is
/// transposed: `{.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}`.
template <int N>
struct TransposedConvolution {
  std::array<index_t, std::size_t(N)> stride = to_array<N>(Shape::filled(N, 1));
  std::array<index_t, std::size_t(N)> padding{};         ///< removed from both sides of the result
  std::array<index_t, std::size_t(N)> output_padding{};  ///< added to the end of the result
  std::array<index_t, std::size_t(N)> dilation = to_array<N>(Shape::filled(N, 1));
};

namespace detail {

/// bias[n] as [n, 1, ..], which repeats along N dimensions.
template <int N>
constexpr auto before_images(const auto& bias) {
  if constexpr (N == 0) return bias;
  else return before_images<N - 1>(unsqueeze(bias, dim<-1>{}));
}

}  // namespace detail

namespace ops {

/// y[b, c, ..] = sum over n, p and u of x[b, n, p] · filters[n, c, u], where position p of the
/// windows of y has y's element at its element u.
///
///     // y[S0] = x[S0], filters[R]     images
///     // y[S1] = x[R],  filters[S1]    channels of the result
///     // y[S2] = x[S2], filters[R]     rows: a rank receives the elements whose windows overlap it
///     // y[P]  = x[S1], filters[S0]    channels of x
template <int N, bool Grouped>
struct ConvolveTransposed {
  using Text = cleave::detail::ConvolutionText<N, Grouped>;
  static constexpr int first_dim = 2 + Grouped;  ///< of rows

  std::array<cleave::detail::WindowSteps, std::size_t(N)> along{};  ///< extents are those of y

  static constexpr const char* name = N == 1   ? "conv_transpose1d"
                                      : N == 2 ? "conv_transpose2d"
                                               : "conv_transpose3d";
  static constexpr bool needs_box = true;
  static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";

  static constexpr RuleText factors(const std::array<int, 2>&) {
    return cleave::detail::factors_text(Text::result, Text::filters,
                                        Text::joined("b", N == 1   ? "cx"
                                                          : N == 2 ? "cxy"
                                                                   : "cxyz"));
  }
  static constexpr RuleText replicated(const std::array<int, 2>&) {
    RuleText text;
    text += N == 1 ? "u" : N == 2 ? "uv" : "uvw";
    return text;
  }
  static constexpr RuleText reads(const std::array<int, 2>&) {
    RuleText text;
    text += N == 1 ? "px" : N == 2 ? "pxqy" : "pxqyrz";
    return text;
  }
  constexpr DimMap read_map(int, int d, const OperandRef*) const {
    const auto& by = along[std::size_t(d - first_dim)];
    return {1, by.stride, by.padding + by.stride - by.span(), by.padding};
  }
  constexpr Shape extents() const {
    Shape shape;
    for (const auto& by : along) shape[shape.dims++] = by.extent;
    return shape;
  }

  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x, const kernels::Strided<const T>& filters) const {
    fill_elements(on, y, T(0));
    if (x.extents.product() == 0 || filters.extents.product() == 0) return;
    Shape first = Shape::filled(N, 0);
    for (int i = 0; i < N; ++i)
      first[i] = cleave::detail::first_place(
          along[std::size_t(i)], task.in_box->begin[first_dim + i], task.box->begin[first_dim + i]);
    const index_t images = x.extents[0], step = std::is_same_v<Device, Host> ? 1 : images;
    kernels::Strided<T> products = products_of(x, filters, step);
    const std::shared_ptr<void> memory =
        allocate_bytes(Device{}, std::size_t(products.extents.product()) * sizeof(T));
    products.data = static_cast<T*>(memory.get());
    for (index_t i = 0; i < images; i += step) {
      contract(on, letters, products, every(x, 0, i, 1, step), filters);
      cleave::detail::add_windows<first_dim>(
          on, along, first, every(y, 0, i, 1, step),
          kernels::Strided<const T>{products.data, products.extents, products.strides});
    }
  }

  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x,
                          const auto& filters) const {
    return call_op(Convolve<N, Grouped>{}, windows(g, x, filters), conj(filters));
  }
  constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x,
                          const auto& filters) const {
    return call_op(typename Text::template Product<typename Text::OfFilters>{}, conj(x),
                   windows(g, x, filters));
  }

 private:
  static constexpr kernels::Contraction letters =
      Text::contraction(Text::result, Text::filters, Text::windows);

  constexpr auto windows(const auto& g, const auto& x, const auto& filters) const {
    Windows<first_dim, N> op{along};
    for (int i = 0; i < N; ++i) {
      op.along[std::size_t(i)].size = int(shape_of(filters)[first_dim + i]);
      op.along[std::size_t(i)].extent = int(shape_of(x)[first_dim + i]);
    }
    return call_op(op, g);
  }
  /// The products of some images, as windows; in memory [groups, channels, elements, images,
  /// positions], in which order a matrix product computes them.
  template <class T>
  static kernels::Strided<T> products_of(const kernels::Strided<const T>& x,
                                         const kernels::Strided<const T>& filters, index_t images) {
    constexpr int dims = first_dim + 2 * N;
    kernels::Strided<T> y{nullptr, Shape::filled(dims, images), Shape::filled(dims, 0)};
    if constexpr (Grouped) y.extents[1] = filters.extents[0];
    y.extents[first_dim - 1] = filters.extents[1 + Grouped];
    index_t stride = 1;
    const auto place = [&](int d) { y.strides[d] = stride, stride *= y.extents[d]; };
    for (int i = 0; i < N; ++i) {
      y.extents[first_dim + 2 * i] = x.extents[first_dim + i];
      y.extents[first_dim + 2 * i + 1] = filters.extents[2 + Grouped + i];
    }
    for (int i = N; i-- > 0;) place(first_dim + 2 * i);
    place(0);
    for (int i = N; i-- > 0;) place(first_dim + 2 * i + 1);
    place(first_dim - 1);
    if constexpr (Grouped) place(1);
    return y;
  }
};

/// A transposed convolution over N dimensions.
template <int N, bool Grouped>
struct ConvTranspose : Composite {
  TransposedConvolution<N> how{};
  index_t groups = 1;

  static constexpr const char* name = ConvolveTransposed<N, Grouped>::name;

  constexpr auto body(const auto& x, const auto& weight, const auto&... bias) const {
    ConvolveTransposed<N, Grouped> op;
    for (std::size_t i = 0; i < std::size_t(N); ++i) op.along[i] = steps(x, weight, int(i));
    if constexpr (Grouped) {
      const index_t filters = shape_of(weight)[1] * groups;
      return plus_bias(
          call_op(Flatten<1, 2>{filters}, call_op(op, grouped<1>(x), grouped<0>(weight))), bias...);
    } else {
      return plus_bias(call_op(op, x, weight), bias...);
    }
  }

 private:
  template <int D>
  constexpr auto grouped(const auto& x) const {
    return call_op(Unflatten<D, 2>{{groups, shape_of(x)[D] / groups}}, x);
  }
  static constexpr auto plus_bias(const auto& y) { return y; }
  static constexpr auto plus_bias(const auto& y, const auto& bias) {
    return add(y, cleave::detail::before_images<N>(bias));
  }
  constexpr cleave::detail::WindowSteps steps(const auto& x, const auto& weight, int i) const {
    const auto at = std::size_t(i);
    const Window window{shape_of(weight)[2 + i], how.stride[at], how.dilation[at]};
    cleave::detail::require_window(name, x, window);
    const index_t count = shape_of(x)[2 + i];
    const index_t extent =
        (count - 1) * window.stride + window.span() - 2 * how.padding[at] + how.output_padding[at];
    const bool fits = how.padding[at] >= 0 && how.output_padding[at] >= 0 &&
                      how.output_padding[at] < std::max(window.stride, window.dilation) &&
                      (extent >= 0 || count == 0);
    if (!fits && cleave::detail::knows_extents(x))
      throw Error(name,
                  "padding " + std::to_string(how.padding[at]) + " and output padding " +
                      std::to_string(how.output_padding[at]) + " along dimension " +
                      std::to_string(2 + i) +
                      ": they must be at least 0, the second below the stride or the dilation, "
                      "and leave a result",
                  cleave::detail::context_of(x));
    return cleave::detail::window_steps(name, window, how.padding[at],
                                        count == 0 || extent < 0 ? 0 : extent);
  }
};

}  // namespace ops

namespace detail {

template <int N, bool Grouped, class... R, class X, class W, class... B>
constexpr auto transposed_convolution(const X& x, const W& weight, index_t groups,
                                      const TransposedConvolution<N>& how, const B&... bias) {
  static_assert(X::dims == N + 2 && W::dims == N + 2 && ((B::dims == 1) && ...),
                "cleave: a transposed convolution takes x [images, channels, ..], weight "
                "[channels, filters, ..] and bias [filters]");
  static_assert(std::is_same_v<typename X::value_type, typename W::value_type> &&
                    (std::is_same_v<typename X::value_type, typename B::value_type> && ...),
                "cleave: the operands of a convolution have different element types; cast one");
  const index_t channels = shape_of(x)[1];
  if (groups < 1 || ((channels != shape_of(weight)[0] || channels % groups != 0) &&
                     knows_extents(x) && knows_extents(weight))) {
    ErrorContext context = context_of(x);
    context.shapes += " and " + to_string(shape_of(weight));
    throw Error(ops::ConvTranspose<N, Grouped>::name,
                "x has " + std::to_string(channels) + " channels, the weight is for " +
                    std::to_string(shape_of(weight)[0]) + " in " + std::to_string(groups) +
                    " groups",
                context);
  }
  return call_op<R...>(ops::ConvTranspose<N, Grouped>{{}, how, groups}, x, weight, bias...);
}

}  // namespace detail

/// Two-dimensional transposed convolution, plus a bias per filter:
/// `conv_transpose2d(x, weight, bias, {.stride = {2, 2}})`.
///
/// @param x       [images, channels, rows, columns]
/// @param weight  [channels, filters, rows, columns]
/// @param bias    [filters]
/// @return        [images, filters, rows, columns]: an extent n of x becomes (n - 1) stride +
///                dilation (size - 1) + 1 - 2 padding + output padding. Without bias, Partial<Sum>
///                on the axes that shard channels of x
/// @collective    every rank of the mesh, if an operand has to be redistributed, or rows or columns
///                are sharded
/// @cost          memory for the windows of the result of one image (on a GPU: of all images);
///                receives the elements of x whose windows overlap the rank's part of the result
/// @throws Error  if the channels do not match, a stride or a dilation is below 1, a padding is
///                negative, or an output padding is not below the stride or the dilation
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv_transpose2d(const X& x, const W& weight, const B& bias,
                                const TransposedConvolution<2>& how = {}) {
  return detail::transposed_convolution<2, false, R...>(x, weight, 1, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv_transpose2d(const X& x, const W& weight,
                                const TransposedConvolution<2>& how = {}) {
  return detail::transposed_convolution<2, false, R...>(x, weight, 1, how);
}

/// Of groups of channels: weight [channels, filters / groups, rows, columns].
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv_transpose2d(const X& x, const W& weight, const B& bias, ChannelGroups groups,
                                const TransposedConvolution<2>& how = {}) {
  return detail::transposed_convolution<2, true, R...>(x, weight, groups.count, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv_transpose2d(const X& x, const W& weight, ChannelGroups groups,
                                const TransposedConvolution<2>& how = {}) {
  return detail::transposed_convolution<2, true, R...>(x, weight, groups.count, how);
}
CLEAVE_USAGE(conv_transpose2d,
             "conv_transpose2d(x, weight), conv_transpose2d(x, weight, bias, {.stride = {2, 2}})")

/// One-dimensional: x [images, channels, length]. Otherwise as conv_transpose2d.
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv_transpose1d(const X& x, const W& weight, const B& bias,
                                const TransposedConvolution<1>& how = {}) {
  return detail::transposed_convolution<1, false, R...>(x, weight, 1, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv_transpose1d(const X& x, const W& weight,
                                const TransposedConvolution<1>& how = {}) {
  return detail::transposed_convolution<1, false, R...>(x, weight, 1, how);
}
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv_transpose1d(const X& x, const W& weight, const B& bias, ChannelGroups groups,
                                const TransposedConvolution<1>& how = {}) {
  return detail::transposed_convolution<1, true, R...>(x, weight, groups.count, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv_transpose1d(const X& x, const W& weight, ChannelGroups groups,
                                const TransposedConvolution<1>& how = {}) {
  return detail::transposed_convolution<1, true, R...>(x, weight, groups.count, how);
}
CLEAVE_USAGE(conv_transpose1d,
             "conv_transpose1d(x, weight), conv_transpose1d(x, weight, bias, {.stride = {2}})")

/// Three-dimensional: x [images, channels, layers, rows, columns]. Otherwise as conv_transpose2d,
/// without groups.
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv_transpose3d(const X& x, const W& weight, const B& bias,
                                const TransposedConvolution<3>& how = {}) {
  return detail::transposed_convolution<3, false, R...>(x, weight, 1, how, bias);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto conv_transpose3d(const X& x, const W& weight,
                                const TransposedConvolution<3>& how = {}) {
  return detail::transposed_convolution<3, false, R...>(x, weight, 1, how);
}
CLEAVE_USAGE(
    conv_transpose3d,
    "conv_transpose3d(x, weight), conv_transpose3d(x, weight, bias, {.stride = {2, 2, 2}})")

}  // namespace cleave::inline v0
