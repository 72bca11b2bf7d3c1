// Products of windows and filters: the step of a convolution after its windows are formed. Lowered
// to matrix products whose columns are windows (im2col).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cleave/kernels/contract.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/linear.hpp>

namespace cleave::inline v0 {

namespace kernels {

/// y = filters · windows for every image.
///
/// @param letters  of filters, windows and y; the first letter of each is the image, along which
///                 the filters broadcast
/// @cost copies the windows of one image (on a GPU: of all) unless they already form a matrix
template <class Device, class T>
void convolve(On<Device> on, const Contraction& letters, const Strided<T>& y,
              const Strided<const T>& filters, const Strided<const T>& windows) {
  const index_t images = y.extents[0], step = std::is_same_v<Device, Host> ? 1 : images;
  for (index_t i = 0; i < images; i += step)
    contract(on, letters, every(y, 0, i, 1, step), filters, every(windows, 0, i, 1, step));
}

}  // namespace kernels

namespace detail {

/// The letters of convolutions over N dimensions: "bcpuqv,ncuv,n->bnpq", and of their gradients.
/// Groups of channels add a letter, g.
template <int N, bool Grouped>
struct ConvolutionText {
  static_assert(N + 2 + N + Grouped <= max_dims,
                "cleave: conv3d has no groups of channels: their windows have nine dimensions");

  static constexpr RuleText joined(const char* start, const char* end) {
    RuleText text;
    text += start;
    if (Grouped) text += 'g';
    text += end;
    return text;
  }
  static constexpr RuleText windows = joined("b", N == 1 ? "cpu" : N == 2 ? "cpuqv" : "cpuqvrw");
  static constexpr RuleText filters = joined("", N == 1 ? "ncu" : N == 2 ? "ncuv" : "ncuvw");
  static constexpr RuleText bias = joined("", "n");
  static constexpr RuleText result = joined("b", N == 1 ? "np" : N == 2 ? "npq" : "npqr");

  struct OfWindows {
    static constexpr RuleText text = factors_text(result, filters, windows);
  };
  struct OfFilters {
    static constexpr RuleText text = factors_text(result, windows, filters);
  };
  template <class Which>
  using Product = ops::Contract<decltype(einsum_of<Which>())>;

  /// Dimensions of the windows that are summed over: channels and positions in a window.
  static constexpr std::array<int, 1 + N> summed = [] {
    std::array<int, 1 + N> dims{};
    dims[0] = 1 + Grouped;
    for (int i = 0; i < N; ++i) dims[std::size_t(1 + i)] = 3 + Grouped + 2 * i;
    return dims;
  }();
  /// Dimensions of the result along which the bias broadcasts, as a mask.
  static constexpr unsigned repeats = [] {
    unsigned mask = 1;
    for (int i = 0; i < N; ++i) mask |= 1u << (2 + Grouped + i);
    return mask;
  }();

  /// The contraction of two arrays with these letters. @param y  those of the result
  static constexpr kernels::Contraction contraction(const RuleText& x, const RuleText& w,
                                                    const RuleText& y) {
    const auto place = [](const RuleText& text, char letter) {
      for (std::size_t d = 0; d < text.size; ++d)
        if (text.text[d] == letter) return std::int8_t(d);
      return std::int8_t(-1);
    };
    kernels::Contraction found;
    for (const char letter : {'b', 'g', 'n', 'p', 'q', 'r', 'c', 'u', 'v', 'w'})
      if (const kernels::Contraction::Index index{place(x, letter), place(w, letter),
                                                  place(y, letter)};
          index.x >= 0 || index.w >= 0)
        found.index[std::size_t(found.count++)] = index;
    return found;
  }
  /// Of filters (with a leading dimension for images), windows and the result.
  static constexpr kernels::Contraction letters = [] {
    RuleText with_images;
    with_images += 'b';
    with_images += filters;
    return contraction(with_images, windows, result);
  }();
};

}  // namespace detail

namespace ops {

/// y[b, n, ..] = sum of windows[b, c, .., u] · filters[n, c, u] + bias[n]. The bias is added
/// once: if channels are sharded, by the first rank.
///
///     // y[S0] = convolve(windows[S0], filters[R],  bias[R])     images
///     // y[S1] = convolve(windows[R],  filters[S0], bias[S0])    channels of the result
///     // y[P]  = convolve(windows[S1], filters[S1], bias[R])     channels of the images
template <int N, bool Grouped>
struct Convolve {
  using Text = cleave::detail::ConvolutionText<N, Grouped>;
  static constexpr const char* name = N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
  static constexpr bool needs_box = true;

  template <class... T>
  static constexpr const char* partials_for() {
    if constexpr (sizeof...(T) == 2) return "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";
    else
      return "sum,R,sum->sum; R,sum,sum->sum; avg,R,avg->avg; avg,R,R->avg; R,avg,avg->avg; "
             "R,avg,R->avg";
  }
  template <std::size_t Operands>
  static constexpr RuleText factors(const std::array<int, Operands>&) {
    RuleText text = Text::filters;
    if constexpr (Operands == 3) {
      text += ',';
      text += Text::bias;
    }
    return cleave::detail::factors_text(Text::windows, text, Text::result);
  }

  template <class T>
  static void kernel(const auto& on, const Task&, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& windows,
                     const kernels::Strided<const T>& filters) {
    kernels::Strided<const T> of_images{filters.data, Shape::filled(1, 1), Shape::filled(1, 0)};
    for (int d = 0; d < filters.extents.dims; ++d) {
      of_images.extents[of_images.extents.dims++] = filters.extents[d];
      of_images.strides[of_images.strides.dims++] = filters.strides[d];
    }
    convolve(on, Text::letters, y, of_images, windows);
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& windows,
                     const kernels::Strided<const T>& filters,
                     const kernels::Strided<const T>& bias) {
    kernel(on, task, y, windows, filters);
    for (const int d : Text::summed)
      if (!cleave::detail::adds_bias(task, d)) return;
    Shape strides = Shape::filled(y.extents.dims, 0);
    for (int d = 0; d < bias.extents.dims; ++d) strides[1 + d] = bias.strides[d];
    cleave::detail::add_repeated(on, y, bias.data, strides);
  }

  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&,
                                 const auto& filters, const auto&...) {
    return call_op(typename Text::template Product<typename Text::OfWindows>{}, g, conj(filters));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& windows,
                                 const auto&...) {
    return call_op(typename Text::template Product<typename Text::OfFilters>{}, g, conj(windows));
  }
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto&, const auto&,
                                 const auto&) {
    return cleave::detail::summed_over<Text::repeats>(g);
  }
};

}  // namespace ops

}  // namespace cleave::inline v0
