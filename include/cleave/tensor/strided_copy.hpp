// Copies between strided views of equal extents: packing, unpacking and transposition on the host.
//
// The loop nest is ordered by the destination's strides and its dimensions are merged, so that a
// copy becomes the fewest and longest runs of bytes. Long runs are memcpy, those of a long array
// bypass the caches, short ones are loops of fixed-size moves; if source and destination are
// contiguous along different dimensions, the plane of these two is transposed in tiles.
#pragma once

#include <cstddef>

#include <cleave/core/config.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Sets all elements to the one at `value`.
template <class Device>
void fill(const View& view, const void* value);

}  // namespace detail

/// Copies all elements of `source` to `destination`, index by index; no other byte is read or
/// written.
///
/// @param array  bytes of the array that is being written, if `destination` is only a part of it:
///               long arrays are not worth keeping in the caches
/// @pre the views have the same extents and element type; they do not overlap, or are the same
CLEAVE_INLINE void strided_copy(const ConstView& source, const View& destination,
                                std::size_t array = 0);
/// The same with the device as an argument.
inline void strided_copy(Host, const ConstView& source, const View& destination) {
  strided_copy(source, destination);
}

/// Copies all elements, in row-major order, to dense memory.
CLEAVE_INLINE void pack_view(const ConstView& source, void* dense);
/// The inverse: copies dense memory to all elements.
CLEAVE_INLINE void unpack_view(const void* dense, const View& destination);

/// Sets every element of a view to `value`. @pre T is the view's element type
template <class T>
void strided_fill(Host, const View& view, const T& value) {
  detail::fill<Host>(view, &value);
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/tensor/strided_copy_body.hpp>
#endif
