// Pooling over windows of images, as PyTorch defines it.
//
//     // y[S0,S1,R,R] = max_pool2d(x[S0,S1,R,R], {.size = {2, 2}})    no communication
//
// Along sharded rows and columns, ranks receive what their windows contain of neighbouring shards.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/convolutions/windows.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

/// Size, stride, padding and dilation of windows over the last N dimensions: `{.size = {2, 2}}`.
template <int N>
struct Pooling {
  std::array<index_t, std::size_t(N)> size = to_array<N>(Shape::filled(N, 1));
  std::array<index_t, std::size_t(N)> stride{};   ///< 0: the size, so that windows do not overlap
  std::array<index_t, std::size_t(N)> padding{};  ///< on both sides; at most half the size
  std::array<index_t, std::size_t(N)> dilation = to_array<N>(Shape::filled(N, 1));
  /// Of averages: whether padding counts as elements, which are 0.
  bool count_include_pad = true;
};

namespace kernels {

/// 1 where x equals y and no earlier element did, else 0.
template <class T>
struct FoundFirst {
  CLEAVE_HOST_DEVICE T operator()(const T& x, const T& y, const bool& before) const {
    const bool same = x == y || (is_nan(x) && is_nan(y));
    return same && !before ? T(1) : T(0);
  }
};
template <class T>
struct FoundSoFar {
  CLEAVE_HOST_DEVICE bool operator()(const bool& before, const T& found) const {
    return before || found != T(0);
  }
};

/// x times a real number.
template <class T>
struct ScaledBy {
  real_t<T> factor;
  CLEAVE_HOST_DEVICE T operator()(const T& x) const { return times(x, T(factor)); }
};

/// Writes 1 at the first element of x along the dimensions of `mask` that equals y, else 0.
///
/// @param y  an array without these dimensions
/// @cost     two passes per index of these dimensions; a bool per element of y
template <class Device, class T>
void first_of_windows(On<Device> on, unsigned mask, const Strided<T>& out,
                      const Strided<const T>& x, const Strided<const T>& y) {
  if (x.extents.product() == 0) return;
  const std::shared_ptr<void> storage =
      allocate_bytes(Device{}, std::size_t(y.extents.product()) * sizeof(bool));
  const Strided<bool> found{static_cast<bool*>(storage.get()), y.extents,
                            row_major_strides(y.extents)};
  const Strided<const bool> before{found.data, found.extents, found.strides};
  fill_elements(on, found, false);
  Shape index = Shape::filled(x.extents.dims, 0);
  do {
    Strided<const T> from = x;
    Strided<T> to = out;
    for (int k = x.extents.dims - 1; k >= 0; --k)
      if (mask >> k & 1u) from = at_index(from, k, index[k]), to = at_index(to, k, index[k]);
    map_elements(on, FoundFirst<T>{}, to, from, y, before);
    map_elements(on, FoundSoFar<T>{}, found, before,
                 Strided<const T>{to.data, to.extents, to.strides});
  } while (next_index(x.extents, index, mask));
}

}  // namespace kernels

namespace ops {

/// 1 at the first element along the dimensions of the mask that equals y, 0 elsewhere.
template <unsigned Mask>
struct FirstOfWindows {
  static constexpr const char* name = "first_of_windows";
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    const RuleText windows = detail::dim_letters(0, dims[0]);
    return detail::factors_text(windows, detail::dim_letters(0, dims[0], Mask), windows);
  }
  static constexpr RuleText replicated(const std::array<int, 2>& dims) {
    return detail::dim_letters(0, dims[0], ~Mask);
  }
  static void kernel(const auto& on, const Task&, const auto& out, const auto& x, const auto& y) {
    first_of_windows(on, Mask, out, x, y);
  }
};

/// The largest element of every window. Of equal elements, the first receives the gradient.
template <unsigned Mask>
struct LargestOfWindows : Composite {
  static constexpr const char* name = "max_pool";
  static constexpr auto body(const auto& x) { return call_op(Reduce<Max, Mask>{}, x); }
  template <class X>
    requires(!std::is_integral_v<typename X::value_type>)
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const X& x) {
    return mul(broadcast_dims<Mask>(g, x), call_op(FirstOfWindows<Mask>{}, x, resolve(y)));
  }
};

}  // namespace ops

namespace detail {

/// The dimensions along which the elements of a window lie, as a mask.
template <int N, int D>
constexpr unsigned mask_of_windows() {
  unsigned mask = 0;
  for (int i = 0; i < N; ++i) mask |= 1u << (D + 1 + 2 * i);
  return mask;
}

/// @throws Error if a window could contain only padding
template <int N, class X>
constexpr std::array<Window, std::size_t(N)> pooling_windows(const char* name, const X& x,
                                                             const Pooling<N>& how) {
  std::array<Window, std::size_t(N)> windows{};
  for (std::size_t i = 0; i < std::size_t(N); ++i) {
    windows[i] = {how.size[i], how.stride[i] == 0 ? how.size[i] : how.stride[i], how.dilation[i]};
    if (how.padding[i] < 0 || 2 * how.padding[i] > how.size[i])
      throw Error(name,
                  "the padding is " + std::to_string(how.padding[i]) +
                      "; it must be at least 0, and at most half of a window of " +
                      std::to_string(how.size[i]),
                  context_of(x));
  }
  return windows;
}

}  // namespace detail

namespace ops {

/// Divides means of windows over the last N dimensions by the share of elements that are no
/// padding.
template <int N>
struct WithoutPadding {
  std::array<cleave::detail::WindowSteps, std::size_t(N)> along{};  ///< extents are the images'

  static constexpr const char* name = "avg_pool";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr bool needs_box = true;

  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    divide(on, task, 0, 1, y, x);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const {
    return call_op(WithoutPadding{*this}, g);
  }

 private:
  /// The number of elements of a window that are in the image.
  static constexpr index_t count(const cleave::detail::WindowSteps& by, index_t position) {
    index_t found = 0;
    for (index_t k = 0; k < by.size; ++k) {
      const index_t at = position * by.stride + k * by.dilation - by.padding;
      found += at >= 0 && at < by.extent;
    }
    return found;
  }
  /// Divides the positions of dimension i and the following ones, in runs of equal counts.
  template <class T>
  void divide(const auto& on, const Task& task, int i, double share, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    if (i == N) {
      using R = kernels::real_t<T>;
      return map_elements(on, kernels::ScaledBy<T>{cleave::detail::converted<R>(1 / share)}, y, x);
    }
    const int d = y.extents.dims - N + i;
    const auto& by = along[std::size_t(i)];
    const index_t first = task.box->begin[d];
    for (index_t begin = 0, end = 0; begin < y.extents[d]; begin = end) {
      const index_t elements = count(by, first + begin);
      while (end < y.extents[d] && count(by, first + end) == elements) ++end;
      divide(on, task, i + 1, share * double(elements) / double(by.size),
             every(y, d, begin, 1, end - begin), every(x, d, begin, 1, end - begin));
    }
  }
};

/// The largest element of every window of the last N dimensions.
template <int N>
struct MaxPool : Composite {
  Pooling<N> how{};

  static constexpr const char* name = N == 1 ? "max_pool1d" : N == 2 ? "max_pool2d" : "max_pool3d";
  template <class X>
  constexpr auto body(const X& x) const {
    constexpr int first = X::dims - N;
    const auto windows = cleave::detail::pooling_windows<N>(name, x, how);
    const auto images = cleave::detail::windows_of<first, N, cleave::detail::Around::lowest>(
        name, x, windows, how.padding);
    return call_op(LargestOfWindows<cleave::detail::mask_of_windows<N, first>()>{}, images);
  }
};

/// The mean of every window of the last N dimensions.
template <int N>
struct AvgPool : Composite {
  Pooling<N> how{};

  static constexpr const char* name = N == 1 ? "avg_pool1d" : N == 2 ? "avg_pool2d" : "avg_pool3d";
  template <class X>
  constexpr auto body(const X& x) const {
    constexpr int first = X::dims - N;
    const auto windows = cleave::detail::pooling_windows<N>(name, x, how);
    WithoutPadding<N> of;
    index_t count = 1;
    for (std::size_t i = 0; i < std::size_t(N); ++i) {
      count *= windows[i].size;
      of.along[i] = cleave::detail::window_steps(name, windows[i], how.padding[i],
                                                 shape_of(x)[first + int(i)]);
    }
    const auto images = cleave::detail::windows_of<first, N, cleave::detail::Around::zeros>(
        name, x, windows, how.padding);
    const auto mean = call_op(Mean<cleave::detail::mask_of_windows<N, first>()>{count}, images);
    return how.count_include_pad ? mean : call_op(of, mean);
  }
};

}  // namespace ops

namespace detail {

template <int N, class X>
constexpr void require_images() {
  static_assert(X::dims >= N, "cleave: pooling takes [.., length], or [.., rows, columns]");
  static_assert(X::dims + N <= max_dims, "cleave: the array has too many dimensions to pool");
}

}  // namespace detail

/// Max pooling: `max_pool2d(x, {.size = {3, 3}, .stride = {2, 2}})`. NaN where a window contains
/// one. Of equal elements, the first receives the gradient.
///
/// @param x  [.., rows, columns]
/// @return   [.., rows, columns]: extent n becomes floor((n + 2 padding - span) / stride) + 1;
///           the span is dilation (size - 1) + 1
/// @collective every rank of the mesh, if x is Partial, or rows or columns are sharded
/// @throws Error if an image is smaller than a window, a size is below 1, a stride is negative, or
///               a padding is negative or more than half the size
template <class... R, AnyTensor X>
constexpr auto max_pool2d(const X& x, const Pooling<2>& how) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  detail::require_images<2, X>();
  return call_op<R...>(ops::MaxPool<2>{{}, how}, x);
}
CLEAVE_USAGE(max_pool2d, "max_pool2d(x, {.size = {2, 2}})")
/// Max pooling over three dimensions: [.., layers, rows, columns]. Otherwise as max_pool2d.
template <class... R, AnyTensor X>
constexpr auto max_pool3d(const X& x, const Pooling<3>& how) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  detail::require_images<3, X>();
  return call_op<R...>(ops::MaxPool<3>{{}, how}, x);
}
CLEAVE_USAGE(max_pool3d, "max_pool3d(x, {.size = {2, 2, 2}})")
/// Max pooling over one dimension: [.., length]. Otherwise as max_pool2d.
template <class... R, AnyTensor X>
constexpr auto max_pool1d(const X& x, const Pooling<1>& how) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  detail::require_images<1, X>();
  return call_op<R...>(ops::MaxPool<1>{{}, how}, x);
}
CLEAVE_USAGE(max_pool1d, "max_pool1d(x, {.size = {2}})")

/// Average pooling: the mean of every window, in which padding counts as zeros, or not at all if
/// `count_include_pad` is false. Otherwise as max_pool2d.
template <class... R, AnyTensor X>
constexpr auto avg_pool2d(const X& x, const Pooling<2>& how) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: avg_pool2d requires a floating-point element type; cast first");
  detail::require_images<2, X>();
  return call_op<R...>(ops::AvgPool<2>{{}, how}, x);
}
CLEAVE_USAGE(avg_pool2d, "avg_pool2d(x, {.size = {2, 2}})")
/// Average pooling over three dimensions: [.., layers, rows, columns]. Otherwise as avg_pool2d.
template <class... R, AnyTensor X>
constexpr auto avg_pool3d(const X& x, const Pooling<3>& how) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: avg_pool3d requires a floating-point element type; cast first");
  detail::require_images<3, X>();
  return call_op<R...>(ops::AvgPool<3>{{}, how}, x);
}
CLEAVE_USAGE(avg_pool3d, "avg_pool3d(x, {.size = {2, 2, 2}})")
/// Average pooling over one dimension: [.., length]. Otherwise as avg_pool2d.
template <class... R, AnyTensor X>
constexpr auto avg_pool1d(const X& x, const Pooling<1>& how) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: avg_pool1d requires a floating-point element type; cast first");
  detail::require_images<1, X>();
  return call_op<R...>(ops::AvgPool<1>{{}, how}, x);
}
CLEAVE_USAGE(avg_pool1d, "avg_pool1d(x, {.size = {2}})")

}  // namespace cleave::inline v0
