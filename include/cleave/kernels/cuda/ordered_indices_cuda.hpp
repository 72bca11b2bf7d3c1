// The indices of the first elements in sorted order along a dimension, on a GPU.
//
// All lines are sorted at once, by keys that consist of the line's number and the element's bits,
// which are mapped such that their order as numbers is that of the elements. Where these need more
// than 64 bits, elements are sorted first, then lines.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/radix_sort_cuda.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// A number that is less than that of another element where the element is; equal for equal ones.
/// NaNs have the largest.
template <class T>
CLEAVE_HOST_DEVICE std::uint64_t order_bits(const T& x) {
  if constexpr (std::is_integral_v<T>) {
    constexpr std::uint64_t top = std::uint64_t{1} << (8 * sizeof(T) - 1);
    if constexpr (std::is_signed_v<T>) return std::uint64_t(std::make_unsigned_t<T>(x)) ^ top;
    else return std::uint64_t(x);
  } else {
    using Bits =
        std::conditional_t<sizeof(T) == 2, std::uint16_t,
                           std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
    constexpr Bits top = Bits(Bits{1} << (8 * sizeof(T) - 1));
    const Bits bits = __builtin_bit_cast(Bits, x);
    if (kernels::is_nan(x)) return Bits(~Bits{0});
    if (Bits(bits << 1) == 0) return top;  // zeros of both signs
    return (bits & top) != 0 ? Bits(~bits) : Bits(bits | top);
  }
}

/// Where an element is in order: its place is line · 2^width + index, its number line · n + index.
struct OrderPlaces {
  index_t n;
  int width;

  explicit OrderPlaces(index_t of) : n(of), width(int(std::bit_width(std::uint64_t(of) - 1))) {}

  CLEAVE_HOST_DEVICE index_t line(index_t place) const { return place >> width; }
  CLEAVE_HOST_DEVICE index_t index(index_t place) const {
    return place & ((index_t{1} << width) - 1);
  }
  CLEAVE_HOST_DEVICE index_t number(index_t place) const { return line(place) * n + index(place); }
};

/// @param loops      array 0 is the elements, array 1 the places
/// @param with_line  whether keys have the line's number above the bits of the element
template <class T>
__global__ void order_keys_kernel(const T* elements, Loops<2> loops, std::uint32_t steps,
                                  OrderPlaces places, bool descending, bool with_line,
                                  std::uint64_t* keys, std::uint64_t* numbers) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  constexpr int width = 8 * int(sizeof(T));
  constexpr std::uint64_t all = ~std::uint64_t{0} >> (64 - width);
  const auto at = loops.at(step);
  const index_t place = at.offset[1], number = places.number(place);
  std::uint64_t key = order_bits(elements[at.offset[0]]);
  if (descending) key ^= all;
  if constexpr (width < 64)
    if (with_line) key |= std::uint64_t(places.line(place)) << width;
  keys[number] = key;
  numbers[number] = std::uint64_t(place);
}

/// @param loops  array 0 is the result, array 1 the sorted places
template <class Place>
__global__ void write_order_kernel(const Place* sorted, index_t* out, Loops<2> loops,
                                   std::uint32_t steps, OrderPlaces places) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  out[at.offset[0]] = places.index(index_t(sorted[at.offset[1]]));
}

}  // namespace cuda::detail

namespace kernels {

/// Writes the indices of the largest or smallest elements of every line along `dim`, in order, as
/// many as `out` has; in the order of the current stream. The same indices as on the host.
///
/// @param out  has the extents of x, except along `dim`, where its extent is at most that of x
/// @cost       sorts whole lines (@see sort_by_keys), by the bits of elements and those of the
///             number of lines; two launches more; memory of 32 bytes per element of x
/// @throws Error if a launch fails, or there is no memory
template <class T>
void ordered_indices(On<Cuda>, const Strided<const T>& x, int dim, bool descending,
                     const Strided<index_t>& out) {
  using namespace cuda::detail;
  if (out.extents.product() == 0) return;
  const OrderPlaces places(x.extents[dim]);
  Shape lines = x.extents;
  lines[dim] = 1;
  const Shape by_line = row_major_strides(lines);
  const auto in_order = [&](index_t line) {
    Shape strides = by_line;
    for (int d = 0; d < strides.dims; ++d) strides[d] *= line;
    strides[dim] = 1;
    return strides;
  };
  const Shape by_place = in_order(index_t{1} << places.width), by_number = in_order(places.n);
  constexpr int width = 8 * int(sizeof(T));
  const int line_bits = int(std::bit_width(std::uint64_t(lines.product()) - 1));
  const bool at_once = width + line_bits <= 64;

  KeyedNumbers sorted(x.extents.product());
  in_pieces(LoopNest<2>(x.extents, {&x.strides, &by_place}), [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece);
    cuda::launch_steps("topk", order_keys_kernel<T>, loops.size(), 1, x.data, loops, loops.size(),
                       places, descending, at_once, sorted.keys(), sorted.numbers());
  });
  sort_by_keys(Cuda{}, "topk", sorted, 0, at_once ? width + line_bits : width);
  if (!at_once) {
    sorted.swap_roles();
    sort_by_keys(Cuda{}, "topk", sorted, places.width, places.width + line_bits);
    sorted.swap_roles();
  }
  in_pieces(LoopNest<2>(out.extents, {&out.strides, &by_number}), [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece);
    cuda::launch_steps("topk", write_order_kernel<std::uint64_t>, loops.size(), 1, sorted.numbers(),
                       out.data, loops, loops.size(), places);
  });
}

}  // namespace kernels

}  // namespace cleave::inline v0
