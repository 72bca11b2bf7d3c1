// Margins: spare elements around the elements of a tensor, into which ghosts are received, so that
// a stencil reads its neighbours where they lie.
//
// A margin is in the storage, not in the type: a tensor with one has gaps between its rows, which
// all operations accept.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

/// Spare elements at both sides of each dimension. @see margin
struct Margin {
  Shape width{};  ///< of one value for all dimensions, or one per dimension
};

/// An argument of factories: `zeros<double>({n, n}, mesh, Shard<0>{}, Shard<1>{}, margin(2))` makes
/// room for two ghosts at each side; `margin(2, 0)` gives a width per dimension.
template <class... N>
  requires((std::is_integral_v<N> && ...) && sizeof...(N) > 0 && sizeof...(N) <= max_dims)
constexpr Margin margin(N... width) {
  return {std::array<index_t, sizeof...(N)>{index_t(width)...}};
}

namespace detail {

/// A dense array with a margin around it; uninitialised.
/// @throws Error if a width is negative, or their number is neither 1 nor Rank
template <class T, int Rank, class Device>
Tensor<T, Rank, Device> make_with_margin(const std::array<index_t, std::size_t(Rank)>& extents,
                                         const Margin& margin) {
  Shape width = margin.width, whole(extents), first = Shape::filled(Rank, 0);
  if (width.dims == 1) width = Shape::filled(Rank, width[0]);
  bool fits = width.dims == Rank;
  for (int d = 0; d < width.dims; ++d) fits = fits && width[d] >= 0;
  if (!fits)
    throw Error("margin",
                "requires one width for all dimensions, or one per dimension, not " +
                    to_string(margin.width),
                {.shapes = to_string(whole)});
  for (int d = 0; d < Rank; ++d) first[d] = width[d], whole[d] += 2 * width[d];
  const Tensor<T, Rank, Device> memory(to_array<Rank>(whole));
  T* const inner = memory.data() + (memory.empty() ? 0 : offset_of(first, Shape(memory.strides())));
  const std::shared_ptr<void> storage(
      memory.storage().get(),
      ReturnMargin{memory.storage(), inner, Shape(extents), Shape(memory.strides()), width});
  return Tensor<T, Rank, Device>::adopt(inner, extents, memory.strides(), storage);
}

/// The margin around all elements of a view of some storage; null if it has none, or if the view
/// has only a part of the elements.
inline const ReturnMargin* margin_around(const std::shared_ptr<void>& storage,
                                         const ConstView& view) {
  const ReturnMargin* const found = std::get_deleter<ReturnMargin>(storage);
  const bool is_whole = found != nullptr && found->first == view.data &&
                        found->extents == view.extents && found->strides == view.strides;
  return is_whole ? found : nullptr;
}

}  // namespace detail

}  // namespace cleave::inline v0
