// Copies between strided views of equal extents: packing, unpacking and transposition on the host.
//
// Dimensions that lie densely behind each other in both views are merged first, so that a copy
// becomes the fewest and longest runs; runs are memcpy, the rest a typed loop.
#pragma once

#include <cstddef>
#include <cstring>

#include <cleave/core/error.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave {

namespace detail {

/// A copy after its dimensions were merged and sorted: at most `max_dims` nested loops.
struct CopyLoops {
  Shape extents{};
  Shape from{};  ///< strides, in elements
  Shape to{};
};

/// Drops dimensions of extent 1 and merges neighbours that are one run in both views.
constexpr CopyLoops merge_dims(const Shape& extents, const Shape& from, const Shape& to) {
  CopyLoops loops;
  for (int d = 0; d < extents.dims; ++d) {
    if (extents[d] == 1) continue;
    const int last = loops.extents.dims - 1;
    if (last >= 0 && loops.from[last] == from[d] * extents[d] &&
        loops.to[last] == to[d] * extents[d]) {
      loops.extents[last] *= extents[d];
      loops.from[last] = from[d];
      loops.to[last] = to[d];
      continue;
    }
    const int next = loops.extents.dims++;
    loops.from.dims = loops.to.dims = loops.extents.dims;
    loops.extents[next] = extents[d];
    loops.from[next] = from[d];
    loops.to[next] = to[d];
  }
  return loops;
}

/// Elements as opaque words of N bytes.
template <std::size_t N>
struct Word {
  std::byte bytes[N];
};

template <class W>
void copy_loops(const W* from, W* to, const CopyLoops& loops, int d) {
  const index_t n = loops.extents[d], a = loops.from[d], b = loops.to[d];
  if (d + 1 < loops.extents.dims) {
    for (index_t i = 0; i < n; ++i) copy_loops(from + i * a, to + i * b, loops, d + 1);
  } else if (a == 1 && b == 1) {
    std::memcpy(to, from, std::size_t(n) * sizeof(W));
  } else {
    for (index_t i = 0; i < n; ++i) to[i * b] = from[i * a];
  }
}

template <std::size_t N>
void copy_words(const void* from, void* to, const CopyLoops& loops) {
  using W = Word<N>;
  if (loops.extents.dims == 0) std::memcpy(to, from, N);
  else copy_loops(static_cast<const W*>(from), static_cast<W*>(to), loops, 0);
}

template <class T>
void strided_fill(T* data, const Shape& extents, const Shape& strides, const T& value) {
  if (extents.product() == 0) return;
  const CopyLoops loops = merge_dims(extents, strides, strides);
  const auto walk = [&](auto& self, T* at, int d) -> void {
    if (d == loops.extents.dims) {
      *at = value;
      return;
    }
    for (index_t i = 0; i < loops.extents[d]; ++i) self(self, at + i * loops.to[d], d + 1);
  };
  walk(walk, data, 0);
}

}  // namespace detail

/// Copies all elements of `source` to `destination`, index by index.
///
/// @pre the views have the same extents and element type and do not overlap
inline void strided_copy(const ConstView& source, const View& destination) {
  if (source.extents.product() == 0) return;
  const detail::CopyLoops loops =
      detail::merge_dims(source.extents, source.strides, destination.strides);
  switch (size_of(source.dtype)) {
    case 1: return detail::copy_words<1>(source.data, destination.data, loops);
    case 2: return detail::copy_words<2>(source.data, destination.data, loops);
    case 4: return detail::copy_words<4>(source.data, destination.data, loops);
    case 8: return detail::copy_words<8>(source.data, destination.data, loops);
    default: return detail::copy_words<16>(source.data, destination.data, loops);
  }
}

}  // namespace cleave
