// Slicing and splitting a dimension: slice, narrow, select, split, chunk.
//
// The result is sharded as the operand is. Shards of a slice do not coincide with those of the
// operand: along the dimension, ranks receive what they lack of their part of the result.
//
//     // y[S0,R]   = slice(x[S0,R], dim<1>{}, 2, 6)     // no communication
//     // y[S0,S1]  = slice(x[S0,S1], dim<1>{}, 2, 6)    // an exchange over the second axis
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/squeeze.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Selects `count` indices of dimension D: begin, begin + step, ..
template <int D>
struct Slice {
  index_t begin = 0;
  index_t step = 1;
  index_t count = 0;

  static constexpr const char* name = "slice";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr auto reads = detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, count); }
  constexpr DimMap read_map(int, int, const OperandRef*) const { return {step, 1, begin, begin}; }
  void view(const Task& task) const {
    const OperandRef& x = *task.in;
    const index_t first = begin + step * task.box->begin[D] - task.in_box->begin[D];
    task.out->data = x.data;
    if (task.out->extents[D] > 0 && x.data != nullptr)
      task.out->data =
          static_cast<std::byte*>(x.data) + first * x.strides[D] * index_t(size_of(x.dtype));
    for (int d = 0; d < x.dims; ++d) task.strides[d] = x.strides[d] * (d == D ? step : 1);
  }
  template <class X>
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x) const;
};

/// An array of zeros, with x at indices begin, begin + step, .. of dimension D.
template <int D>
struct Embed {
  index_t extent = 0;
  index_t begin = 0;
  index_t step = 1;

  static constexpr const char* name = "embed";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr auto reads = detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  constexpr DimMap read_map(int, int, const OperandRef*) const {
    return {1, step, step - 1 - begin, -begin};
  }
  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y, const auto& x) const {
    fill_elements(on, y, T(0));
    place_slices(on, x, y, D, task.box->begin[D], begin + step * task.in_box->begin[D], step);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), Slice<D>{begin, step, shape_of(x)[D]}, g);
  }
};

template <int D>
template <class X>
constexpr auto Slice<D>::gradient(wrt<0>, const auto& g, const auto&, const X& x) const {
  return detail::call_as(detail::like(x), Embed<D>{shape_of(x)[D], begin, step}, g);
}

/// The slice at one index of dimension D, without the dimension.
template <int D>
struct Select : Composite {
  index_t index = 0;

  static constexpr const char* name = "select";
  constexpr auto body(const auto& x) const {
    return squeeze(call_op(Slice<D>{index, 1, 1}, x), dim<D>{});
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), Embed<D>{shape_of(x)[D], index, 1},
                           unsqueeze(g, dim<D>{}));
  }
};

}  // namespace ops

namespace detail {

/// The index counted from the front; negative ones count from the end of the extent.
/// @throws Error if it is not in [0, end)
template <class X>
constexpr index_t checked_index(const char* name, const X& x, index_t index, index_t extent,
                                index_t end) {
  const index_t counted = index < 0 ? index + extent : index;
  if (counted >= 0 && counted < end) return counted;
  if (knows_extents(x))
    throw Error(
        name,
        "index " + std::to_string(index) + " is not in the extent of " + std::to_string(extent),
        context_of(x));
  return 0;
}

/// @throws Error if a length is negative
template <class X>
constexpr index_t checked_length(const char* name, const X& x, index_t length) {
  if (length >= 0) return length;
  if (knows_extents(x))
    throw Error(name, "a length is negative: " + std::to_string(length), context_of(x));
  return 0;
}

template <int D, class... R, class X>
constexpr auto slice_of(const char* name, const X& x, index_t begin, index_t end, index_t step) {
  const index_t extent = shape_of(x)[D];
  const index_t first = checked_index(name, x, begin, extent, extent + 1);
  const index_t last = checked_index(name, x, end, extent, extent + 1);
  if (step < 1)
    throw Error(name, "the step must be at least 1, not " + std::to_string(step), context_of(x));
  const index_t length = checked_length(name, x, last - first);
  return call_op<R...>(ops::Slice<D>{first, step, (length + step - 1) / step}, x);
}

}  // namespace detail

/// Selects indices begin, begin + step, .. below `end` of a dimension; negative bounds count from
/// its end: `slice(x, dim<1>{}, 0, -1)`.
///
/// @return a view of the local elements, or, along a sharded dimension, of what the rank has read
/// @collective every rank of the mesh, if the dimension is sharded
/// @cost       receives the elements of the rank's part of the result that are not in its part of x
/// @throws Error if begin or end is out of range, end is before begin, or step < 1
template <class... R, AnyTensor X, int D>
constexpr auto slice(const X& x, dim<D>, index_t begin, index_t end, index_t step = 1) {
  return detail::slice_of<detail::dim_index<X::dims>(dim<D>{}), R...>("slice", x, begin, end, step);
}
CLEAVE_USAGE(slice, "slice(x, dim<0>{}, begin, end), slice(x, dim<0>{}, begin, end, step)")

/// Selects `length` indices of a dimension, from `begin` on. Otherwise as slice.
template <class... R, AnyTensor X, int D>
constexpr auto narrow(const X& x, dim<D>, index_t begin, index_t length) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  const index_t extent = shape_of(x)[d];
  const index_t first = detail::checked_index("narrow", x, begin, extent, extent + 1);
  return detail::slice_of<d, R...>("narrow", x, first,
                                   first + detail::checked_length("narrow", x, length), 1);
}
CLEAVE_USAGE(narrow, "narrow(x, dim<0>{}, begin, length)")

/// Selects one index of a dimension and removes the dimension. Otherwise as slice.
template <class... R, AnyTensor X, int D>
constexpr auto select(const X& x, dim<D>, index_t index) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  const index_t extent = shape_of(x)[d];
  return call_op<R...>(
      ops::Select<d>{{}, detail::checked_index("select", x, index, extent, extent)}, x);
}
CLEAVE_USAGE(select, "select(x, dim<0>{}, index)")

/// Splits a dimension by a list of lengths: `auto [q, k, v] = split(x, dim<1>{}, {8, 2, 2})`.
///
/// @return a std::array of parts, each as of slice
/// @collective every rank of the mesh, if the dimension is sharded
/// @throws Error if the lengths do not add up to the extent
template <class... R, AnyTensor X, int D, std::size_t Count>
constexpr auto split(const X& x, dim<D>, const index_t (&lengths)[Count]) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  index_t sum = 0;
  for (const index_t length : lengths) sum += detail::checked_length("split", x, length);
  if (sum != shape_of(x)[d] && detail::knows_extents(x))
    throw Error("split",
                "the lengths add up to " + std::to_string(sum) + ", the extent is " +
                    std::to_string(shape_of(x)[d]),
                detail::context_of(x));
  std::array<index_t, Count + 1> begin{};
  for (std::size_t i = 0; i < Count; ++i) begin[i + 1] = begin[i] + lengths[i];
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{call_op<R...>(ops::Slice<d>{begin[I], 1, lengths[I]}, x)...};
  }(std::make_index_sequence<Count>{});
}

/// Splits a dimension into parts of one length, of which the last may be shorter. Returns a
/// std::vector; otherwise as above.
/// @throws Error if the length is not positive
template <class... R, AnyTensor X, int D>
constexpr auto split(const X& x, dim<D>, index_t length) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  if (length < 1)
    throw Error("split", "the length must be at least 1, not " + std::to_string(length),
                detail::context_of(x));
  const index_t extent = shape_of(x)[d];
  std::vector<decltype(call_op<R...>(ops::Slice<d>{}, x))> parts;
  for (index_t at = 0; at < extent; at += length)
    parts.push_back(
        call_op<R...>(ops::Slice<d>{at, 1, at + length < extent ? length : extent - at}, x));
  return parts;
}
CLEAVE_USAGE(split, "split(x, dim<0>{}, length), split(x, dim<0>{}, {2, 4})")

/// Splits a dimension into `Count` equal parts: `auto [q, k, v] = chunk<3>(x, dim<1>{})`. Returns a
/// std::array; otherwise as split.
/// @throws Error if the extent is not divisible by Count
template <int Count, class... R, AnyTensor X, int D>
constexpr auto chunk(const X& x, dim<D>) {
  static_assert(Count > 0, "cleave: chunk requires at least one part");
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  const index_t extent = shape_of(x)[d], length = extent / Count;
  if (extent % Count != 0 && detail::knows_extents(x))
    throw Error(
        "chunk",
        "an extent of " + std::to_string(extent) + " is not divisible by " + std::to_string(Count),
        detail::context_of(x));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{call_op<R...>(ops::Slice<d>{index_t(I) * length, 1, length}, x)...};
  }(std::make_index_sequence<std::size_t(Count)>{});
}
CLEAVE_USAGE(chunk, "chunk<2>(x, dim<0>{})")

}  // namespace cleave::inline v0
