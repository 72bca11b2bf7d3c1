// Sliding windows along a dimension, and sums of overlapping windows: the building blocks of
// convolutions and pooling.
//
//     // y[S0,R,R] = windows(x[S0,R], dim<1>{}, {.size = 3})     [5, 8] becomes [5, 6, 3]
//
// The positions of windows are sharded as the dimension is: ranks receive the elements of their
// windows that they lack.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/slice.hpp>

namespace cleave {

/// A window of `size` elements, `dilation` apart, that moves by `stride`.
struct Window {
  index_t size = 1;
  index_t stride = 1;
  index_t dilation = 1;

  /// The number of elements from its first to its last one.
  constexpr index_t span() const { return (size - 1) * dilation + 1; }
};

namespace detail {

/// "adec": letters of `dims` dimensions, with two for dimension `at`: positions and elements of a
/// window.
constexpr RuleText window_letters(int dims, int at) {
  RuleText text = dim_letters(0, at);
  text += dim_letters(dims, dims + 2);
  text += dim_letters(at + 1, dims);
  return text;
}
/// The letter of the elements of a window, which are not sharded.
constexpr RuleText window_replicated(int dims) { return dim_letters(dims + 1, dims + 2); }

}  // namespace detail

namespace ops {

/// Replaces dimension D by two: `count` positions of a window, and the elements of the window. A
/// view, in which overlapping windows share elements.
template <int D>
struct Windows {
  Window window{};
  index_t count = 0;

  static constexpr const char* name = "windows";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0]),
                                detail::window_letters(dims[0], D));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return detail::window_replicated(dims[0]);
  }
  static constexpr RuleText reads(const std::array<int, 1>& dims) {
    RuleText text = detail::letter_of(D);
    text += detail::letter_of(dims[0]);
    return text;
  }
  constexpr DimMap read_map(int, int, const OperandRef*) const {
    return {window.stride, 1, 0, window.span() - 1};
  }
  constexpr Shape extents() const { return Shape(std::array<index_t, 2>{count, window.size}); }
  void view(const Task& task) const {
    const OperandRef& x = *task.in;
    const index_t first = task.box->begin[D] * window.stride - task.in_box->begin[D];
    task.out->data = x.data;
    if (task.out->extents[D] > 0 && x.data != nullptr)
      task.out->data =
          static_cast<std::byte*>(x.data) + first * x.strides[D] * index_t(size_of(x.dtype));
    for (int d = 0; d < x.dims; ++d) task.strides[d <= D ? d : d + 1] = x.strides[d];
    task.strides[D] = x.strides[D] * window.stride;
    task.strides[D + 1] = x.strides[D] * window.dilation;
  }
  template <class X>
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x) const;
};

/// Merges dimensions D and D + 1, positions and elements of windows, into one of `extent` elements,
/// each the sum over all windows that contain it; 0 if no window does.
template <int D>
struct OverlapAdd {
  index_t extent = 0;
  index_t stride = 1;
  index_t dilation = 1;

  static constexpr const char* name = "overlap_add";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::window_letters(dims[0] - 1, D),
                                detail::dim_letters(0, dims[0] - 1));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return detail::window_replicated(dims[0] - 1);
  }
  static constexpr RuleText reads(const std::array<int, 1>& dims) {
    RuleText text = detail::letter_of(dims[0] - 1);
    text += detail::letter_of(D);
    return text;
  }
  constexpr DimMap read_map(int, int, const OperandRef* in) const {
    const Window window{in->shape[D + 1], stride, dilation};
    return {1, stride, std::min<index_t>(stride - window.span(), 0), 0};
  }
  constexpr Shape extents() const { return Shape::filled(1, extent); }

  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    fill_elements(on, y, T(0));
    if (x.extents.product() == 0) return;
    for (index_t k = 0; k < x.extents[D + 1]; ++k) {
      // position i of x is at y[place + i * stride]
      const index_t place = task.in_box->begin[D] * stride + k * dilation - task.box->begin[D];
      const auto at_least = [&](index_t index) {
        return std::clamp<index_t>(-floor_divide(place - index, stride), 0, x.extents[D]);
      };
      const index_t from = at_least(0), count = at_least(y.extents[D]) - from;
      if (count <= 0) continue;
      const kernels::Strided<T> to = every(y, D, place + from * stride, stride, count);
      map_elements(on, Add{}, to, kernels::Strided<const T>{to.data, to.extents, to.strides},
                   every(kernels::at_index(x, D + 1, k), D, from, 1, count));
    }
  }
  template <class X>
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x) const {
    const Shape shape = shape_of(x);
    return call_op(Windows<D>{{shape[D + 1], stride, dilation}, shape[D]}, g);
  }
};

template <int D>
template <class X>
constexpr auto Windows<D>::gradient(wrt<0>, const auto& g, const auto&, const X& x) const {
  return detail::call_as(detail::like(x),
                         OverlapAdd<D>{shape_of(x)[D], window.stride, window.dilation}, g);
}

}  // namespace ops

namespace detail {

/// @throws Error if size, stride or dilation is below 1
template <class X>
constexpr void require_window(const char* name, const X& x, const Window& window) {
  if (window.size < 1 || window.stride < 1 || window.dilation < 1)
    throw Error(name,
                "a window has size " + std::to_string(window.size) + ", stride " +
                    std::to_string(window.stride) + " and dilation " +
                    std::to_string(window.dilation) + "; each must be 1 or more",
                context_of(x));
}

/// The windows of dimension D. @throws Error if it is shorter than a window
template <int D, class... R, class X>
constexpr auto windows_of(const char* name, const X& x, const Window& window) {
  require_window(name, x, window);
  const index_t extent = shape_of(x)[D];
  if (extent < window.span() && knows_extents(x))
    throw Error(name,
                "a window spans " + std::to_string(window.span()) + " elements, dimension " +
                    std::to_string(D) + " has " + std::to_string(extent),
                context_of(x));
  const index_t last = extent - window.span();
  return call_op<R...>(ops::Windows<D>{window, last < 0 ? 0 : last / window.stride + 1}, x);
}

/// Makes the operation that pads dimension D with zeros on both sides.
struct ZerosAround {
  template <int D>
  constexpr ops::Embed<D> of(index_t extent, index_t padding) const {
    return {extent, padding, 1};
  }
};

/// x padded by an operation; x itself if the padding is 0 and the dimension is not sharded.
template <class X, class Op>
constexpr auto padded(const X& x, index_t padding, const Op& op) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(call_op(op, x))>, X>)
    if (padding == 0) return x;
  return call_op(op, x);
}

/// The windows of N padded dimensions from D on, each followed by one for the window's elements.
template <int N, int D, class X, class Pad>
constexpr auto windows_of_images(const char* name, const X& x, const Window* window,
                                 const index_t* padding, const Pad& pad) {
  const auto op = pad.template of<D>(padded_extent(x, D, *padding, *padding), *padding);
  const auto first = windows_of<D>(name, padded(x, *padding, op), *window);
  if constexpr (N == 1) return first;
  else return windows_of_images<N - 1, D + 2>(name, first, window + 1, padding + 1, pad);
}

}  // namespace detail

/// Sliding windows along a dimension: `windows(x, dim<1>{}, {.size = 3, .stride = 2})` is
/// [.., positions, 3, ..], whose element (i, k) is x at 2 i + k.
///
/// @return a view of the local elements, repeated if windows overlap: must not be written to
/// @collective every rank of the mesh, if the dimension is sharded
/// @cost       along a sharded dimension, receives the elements of the rank's windows that it lacks
/// @throws Error if the dimension is shorter than a window, or size, stride or dilation is below 1
template <class... R, AnyTensor X, int D>
constexpr auto windows(const X& x, dim<D>, const Window& window) {
  return detail::windows_of<detail::dim_index<X::dims>(dim<D>{}), R...>("windows", x, window);
}

/// Sums overlapping windows, the reverse of windows: merges dimensions D and D + 1 of x, positions
/// and elements of windows, into one of `extent` elements, each the sum over all windows that
/// contain it; 0 if no window does.
///
/// @param window  its stride and dilation; the size is that of dimension D + 1 of x
/// @collective    every rank of the mesh, if one of the dimensions is sharded: that of the elements
/// is
///                gathered; of positions ranks receive what they lack
/// @throws Error  if a window reaches beyond the extent
template <class... R, AnyTensor X, int D>
constexpr auto overlap_add(const X& x, dim<D>, index_t extent, Window window = {}) {
  static_assert(X::dims > 1, "cleave: overlap_add takes places and windows, two dimensions");
  constexpr int d = detail::dim_index<X::dims - 1>(dim<D>{});
  const index_t places = shape_of(x)[d];
  window.size = shape_of(x)[d + 1];
  if (window.size > 0) detail::require_window("overlap_add", x, window);
  const index_t reach =
      places > 0 && window.size > 0 ? (places - 1) * window.stride + window.span() : 0;
  if (extent < reach && detail::knows_extents(x))
    throw Error("overlap_add",
                "the windows span " + std::to_string(reach) + " elements, the extent is " +
                    std::to_string(extent),
                detail::context_of(x));
  return call_op<R...>(ops::OverlapAdd<d>{extent, window.stride, window.dilation}, x);
}

}  // namespace cleave
