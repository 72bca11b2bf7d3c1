// Copies between strided views in device memory, and fills: packing, unpacking and transposition.
//
// Elements are treated as bytes: the loops of a copy are ordered by the destination's strides and
// merged down to bytes, so that each access moves the widest word that both views allow, whatever
// the element type. One run of bytes in both views is copied by the runtime, which can also copy to
// and from host memory; transposed planes go through shared memory in tiles; rows that are aligned
// to one or two bytes are shifted word by word; all else is copied as an elementwise map.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Planes with a shorter side are not transposed in tiles.
inline constexpr index_t least_tile_side = 16;

/// The bytes of a T, with its alignment, so that types of equal size and alignment share kernels.
template <class T>
struct BytesOf {
  using Part = word_t<int(alignof(T))>;
  static constexpr std::size_t parts = sizeof(T) / sizeof(Part);
  using type = std::conditional_t<parts == 1, Part, std::array<Part, parts>>;
};

/// Sets every element to the given bytes.
template <class Bytes>
void fill_bytes(const View& view, const Bytes& bytes);

}  // namespace cuda::detail

// Templates with a single instantiation: kernels are compiled where copies are used, not wherever
// this file is included.

/// Copies all elements of `source` to the same indices of `destination`, in the order of the
/// current stream; no other byte is read or written.
///
/// @pre the views have the same extents and element type and do not overlap; both are in memory of
///      the current device, or all elements are one run of bytes in both
/// @cost one launch; bytes move once
/// @throws Error if the copy cannot be enqueued
template <std::same_as<Cuda> Device>
void strided_copy(Device, const ConstView& source, const View& destination);

/// Sets every element of a view to `value`, likewise. @pre T is the view's element type
template <class T>
void strided_fill(Cuda, const View& view, const T& value) {
  using Bytes = typename cuda::detail::BytesOf<T>::type;
  cuda::detail::fill_bytes(view, __builtin_bit_cast(Bytes, value));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/kernels/cuda/strided_copy_cuda_body.hpp>
#endif
