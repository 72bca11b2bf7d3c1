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
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/pad.hpp>

namespace cleave::inline v0 {

/// A window of `size` elements, `dilation` apart, that moves by `stride`.
struct Window {
  index_t size = 1;
  index_t stride = 1;
  index_t dilation = 1;

  /// The number of elements from its first to its last one.
  constexpr index_t span() const { return (size - 1) * dilation + 1; }
};

namespace detail {

/// "adefg": letters of `dims` dimensions, with two for each of `count` dimensions from `at` on:
/// positions and elements of a window.
constexpr RuleText window_letters(int dims, int at, int count) {
  RuleText text = dim_letters(0, at);
  text += dim_letters(dims, dims + 2 * count);
  text += dim_letters(at + count, dims);
  return text;
}
/// The letters of the elements of windows, which are not sharded.
constexpr RuleText window_replicated(int dims, int count) {
  RuleText text;
  for (int i = 0; i < count; ++i) text += char('a' + dims + 2 * i + 1);
  return text;
}

/// The lowest number of a type.
template <class T>
constexpr T lowest_of() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  else return T(-std::numeric_limits<accumulator_t<T>>::infinity());
}

/// Windows along one dimension, in 32 bits each: operations of traced programs have 64 bytes.
struct WindowSteps {
  int size = 1, stride = 1, dilation = 1;
  int padding = 0;  ///< elements of windows before index 0
  int extent = 0;   ///< of the dimension of the result, or of the images

  constexpr index_t span() const { return index_t(size - 1) * dilation + 1; }
};

/// @throws Error if a number does not fit
constexpr WindowSteps window_steps(const char* name, const Window& window, index_t padding,
                                   index_t extent) {
  for (const index_t n : {window.size, window.stride, window.dilation, padding, extent})
    if (n != index_t(int(n)))
      throw Error(
          name, "windows, and extents along them, are at most 2^31 - 1, not " + std::to_string(n));
  return {int(window.size), int(window.stride), int(window.dilation), int(padding), int(extent)};
}

/// What elements beyond the edges are.
enum class Around : std::uint8_t { zeros, lowest };

}  // namespace detail

namespace ops {

/// Replaces each of N dimensions from D on by two: `count` positions of a window, and the elements
/// of the window. A view, in which overlapping windows share elements.
template <int D, int N = 1, detail::Around Edge = detail::Around::zeros>
struct Windows {
  std::array<cleave::detail::WindowSteps, std::size_t(N)> along{};  ///< extents are the counts

  static constexpr const char* name = "windows";
  static constexpr const char* partials =
      Edge == detail::Around::zeros ? moves_elements : "max->max; min->min";
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0]),
                                detail::window_letters(dims[0], D, N));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return detail::window_replicated(dims[0], N);
  }
  static constexpr RuleText reads(const std::array<int, 1>& dims) {
    RuleText text;
    for (int i = 0; i < N; ++i) text += char('a' + D + i), text += char('a' + dims[0] + 2 * i);
    return text;
  }
  constexpr DimMap read_map(int, int d, const OperandRef*) const {
    const auto& by = along[std::size_t(d - D)];
    return {by.stride, 1, -by.padding, by.span() - 1 - by.padding};
  }
  constexpr Shape extents() const {
    Shape shape;
    for (const auto& by : along) shape[shape.dims++] = by.extent, shape[shape.dims++] = by.size;
    return shape;
  }
  constexpr bool extends_operand() const {
    for (const auto& by : along)
      if (by.padding != 0) return true;
    return false;
  }
  template <class T>
  static constexpr T beyond() {
    return Edge == detail::Around::zeros ? T(0) : detail::lowest_of<T>();
  }
  void view(const Task& task) const {
    const OperandRef& x = *task.in;
    bool is_empty = x.data == nullptr;
    index_t offset = 0;
    for (int d = 0; d < x.dims; ++d)
      task.strides[d < D ? d : d < D + N ? 2 * d - D : d + N] = x.strides[d];
    for (int i = 0; i < N; ++i) {
      const auto& by = along[std::size_t(i)];
      const index_t stride = x.strides[D + i];
      const int at = D + 2 * i;
      is_empty = is_empty || task.out->extents[at] == 0;
      offset += (task.box->begin[at] * by.stride - by.padding - task.in_box->begin[D + i]) * stride;
      task.strides[at] = stride * by.stride;
      task.strides[at + 1] = stride * by.dilation;
    }
    task.out->data = x.data;
    if (!is_empty)
      task.out->data = static_cast<std::byte*>(x.data) + offset * index_t(size_of(x.dtype));
  }
  template <class X>
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x) const;
};

}  // namespace ops

namespace detail {

/// Where in a part of a result the first element of the first window of a part of windows is.
constexpr index_t first_place(const WindowSteps& by, index_t first_window, index_t first_result) {
  return first_window * by.stride - by.padding - first_result;
}

/// Adds overlapping windows to y.
///
/// @param first  the first element of the first window in y, per dimension of windows
/// @param x      positions and elements of windows, for each dimension from D on
template <int D, std::size_t N, class T>
void add_windows(const auto& on, const std::array<WindowSteps, N>& along, const Shape& first,
                 const kernels::Strided<T>& y, const kernels::Strided<const T>& x) {
  if (x.extents.product() == 0) return;
  Shape sizes = Shape::filled(int(N), 0), k = sizes;
  for (int i = 0; i < int(N); ++i) sizes[i] = x.extents[D + 2 * i + 1];
  do {
    kernels::Strided<T> to = y;
    kernels::Strided<const T> from = x;
    bool is_empty = false;
    for (int i = 0; i < int(N); ++i) {
      const auto& by = along[std::size_t(i)];
      const index_t place = first[i] + k[i] * by.dilation;  // x[p] is at y[place + p * stride]
      from = kernels::at_index(from, D + i + 1, k[i]);
      const auto at_least = [&](index_t index) {
        return std::clamp<index_t>(-floor_divide(place - index, by.stride), 0, from.extents[D + i]);
      };
      const index_t begin = at_least(0), count = at_least(y.extents[D + i]) - begin;
      is_empty = is_empty || count <= 0;
      if (is_empty) break;
      to = every(to, D + i, place + begin * by.stride, by.stride, count);
      from = every(from, D + i, begin, 1, count);
    }
    if (!is_empty)
      map_elements(on, ops::Add{}, to, kernels::Strided<const T>{to.data, to.extents, to.strides},
                   from);
  } while (next_index(sizes, k));
}

}  // namespace detail

namespace ops {

/// Merges positions and elements of windows, from dimension D on, into N dimensions of `extent`
/// elements, each the sum over all windows that contain it; 0 if no window does. Windows may reach
/// beyond both edges.
template <int D, int N = 1>
struct OverlapAdd {
  std::array<cleave::detail::WindowSteps, std::size_t(N)> along{};  ///< sizes are those of x

  static constexpr const char* name = "overlap_add";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::window_letters(dims[0] - N, D, N),
                                detail::dim_letters(0, dims[0] - N));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return detail::window_replicated(dims[0] - N, N);
  }
  static constexpr RuleText reads(const std::array<int, 1>& dims) {
    RuleText text;
    for (int i = 0; i < N; ++i) text += char('a' + dims[0] - N + 2 * i), text += char('a' + D + i);
    return text;
  }
  constexpr DimMap read_map(int, int d, const OperandRef* in) const {
    const auto& by = along[std::size_t(d - D) / 2];
    const Window window{in->shape[d + 1], by.stride, by.dilation};
    return {1, by.stride, by.padding + by.stride - window.span(), by.padding};
  }
  constexpr Shape extents() const {
    Shape shape;
    for (const auto& by : along) shape[shape.dims++] = by.extent;
    return shape;
  }

  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    fill_elements(on, y, T(0));
    Shape first = Shape::filled(N, 0);
    for (int i = 0; i < N; ++i)
      first[i] = cleave::detail::first_place(along[std::size_t(i)], task.in_box->begin[D + 2 * i],
                                             task.box->begin[D + i]);
    cleave::detail::add_windows<D>(on, along, first, y, x);
  }
  static constexpr unsigned gradient_reads = 0;
  template <class X>
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x) const {
    Windows<D, N> windows{along};
    for (int i = 0; i < N; ++i) {
      windows.along[std::size_t(i)].size = int(shape_of(x)[D + 2 * i + 1]);
      windows.along[std::size_t(i)].extent = int(shape_of(x)[D + 2 * i]);
    }
    return call_op(windows, g);
  }
};

template <int D, int N, detail::Around Edge>
template <class X>
constexpr auto Windows<D, N, Edge>::gradient(wrt<0>, const auto& g, const auto&, const X& x) const {
  OverlapAdd<D, N> sums{along};
  for (int i = 0; i < N; ++i) sums.along[std::size_t(i)].extent = int(shape_of(x)[D + i]);
  return detail::call_as(detail::like(x), sums, g);
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

/// The windows of N dimensions from D on, padded on both sides.
/// @throws Error if a padded dimension is shorter than a window
template <int D, int N, Around Edge, class... R, class X>
constexpr auto windows_of(const char* name, const X& x,
                          const std::array<Window, std::size_t(N)>& window,
                          const std::array<index_t, std::size_t(N)>& padding) {
  ops::Windows<D, N, Edge> op;
  for (std::size_t i = 0; i < std::size_t(N); ++i) {
    const int d = D + int(i);
    require_window(name, x, window[i]);
    const index_t extent = padded_extent(x, d, padding[i], padding[i]);
    if (extent < window[i].span() && knows_extents(x))
      throw Error(name,
                  "a window spans " + std::to_string(window[i].span()) + " elements, dimension " +
                      std::to_string(d) + " has " + std::to_string(extent),
                  context_of(x));
    const index_t last = extent - window[i].span();
    op.along[i] =
        window_steps(name, window[i], padding[i], last < 0 ? 0 : last / window[i].stride + 1);
  }
  return call_op<R...>(op, x);
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
  return detail::windows_of<detail::dim_index<X::dims>(dim<D>{}), 1, detail::Around::zeros, R...>(
      "windows", x, {window}, {0});
}
CLEAVE_USAGE(windows, "windows(x, dim<0>{}, {.size = 3})")

/// Sums overlapping windows, the reverse of windows: merges dimensions D and D + 1 of x, positions
/// and elements of windows, into one of `extent` elements, each the sum over all windows that
/// contain it; 0 if no window does.
///
/// @param window  its stride and dilation; the size is that of dimension D + 1 of x
/// @collective    every rank of the mesh, if one of the dimensions is sharded: ranks gather that of
///                the elements, and receive the positions that they lack
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
  return call_op<R...>(ops::OverlapAdd<d>{{detail::window_steps("overlap_add", window, 0, extent)}},
                       x);
}
CLEAVE_USAGE(overlap_add, "overlap_add(x, dim<0>{}, extent, {.size = 3})")

}  // namespace cleave::inline v0
