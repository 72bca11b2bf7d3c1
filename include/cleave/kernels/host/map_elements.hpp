// One pass over any number of arrays: out[i] = f(a[i], b[i], ..).
//
// Dimensions that lie densely behind each other in all arrays are merged. Along the innermost one
// the loop sees contiguous rows only, so that one body serves all strides and vectorises: rows
// that repeat an element or skip elements are copied to a small buffer first.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::kernels {

namespace detail {

/// The loops of N arrays after merging.
template <int N>
struct MapLoops {
  int dims = 0;
  index_t extents[max_dims + 1];
  index_t strides[max_dims + 1][N];

  MapLoops(const Shape& shape, const Shape* const (&of)[N]) {
    for (int d = 0; d < shape.dims; ++d) {
      if (shape[d] == 1) continue;
      if (dims == 0 || !continues(shape[d], d, of)) extents[dims++] = 1;
      extents[dims - 1] *= shape[d];
      for (int k = 0; k < N; ++k) strides[dims - 1][k] = (*of[k])[d];
    }
    if (dims > 0) return;
    dims = 1;  // a single element
    extents[0] = 1;
    for (int k = 0; k < N; ++k) strides[0][k] = 1;
  }

 private:
  /// Whether dimension d lies densely inside the last loop in all arrays.
  bool continues(index_t extent, int d, const Shape* const (&of)[N]) const {
    for (int k = 0; k < N; ++k)
      if (strides[dims - 1][k] != (*of[k])[d] * extent) return false;
    return true;
  }
};

/// How many elements of a row are handled at once: small enough for the first cache.
inline constexpr index_t map_chunk = 256;

/// One input along the current row.
template <class T>
class Feed {
 public:
  explicit Feed(const T* data) : row_(data) {}

  void advance(index_t offset) { row_ += offset; }

  /// Prepares a row of `length` elements.
  void start(index_t step, index_t length) {
    step_ = step;
    if (step != 0) return;
    const T value = *row_;
    const index_t n = length < map_chunk ? length : map_chunk;
    for (index_t i = 0; i < n; ++i) packed()[i] = value;
  }

  /// Elements [first, first + n) of the row, next to each other. @pre n <= map_chunk
  const T* chunk(index_t first, index_t n) {
    if (step_ == 1) return row_ + first;
    if (step_ != 0) {
      const T* from = row_ + first * step_;
      for (index_t i = 0; i < n; ++i) packed()[i] = from[i * step_];
    }
    return packed();
  }

 private:
  T* packed() { return reinterpret_cast<T*>(buffer_); }

  const T* row_;
  index_t step_ = 1;
  alignas(64) std::byte buffer_[std::size_t(map_chunk) * sizeof(T)];
};

template <class F, class R, class... T>
void map_row(const F& f, R* __restrict__ out, index_t n, const T*... in) {
  for (index_t i = 0; i < n; ++i) out[i] = f(in[i]...);
}

}  // namespace detail

/// Writes f of the inputs' elements to every element of `out`.
///
/// @param out  its innermost dimension has stride 1 (or extent 1); overlaps no input
/// @param in   strides for the extents of `out`: 0 along dimensions that repeat
template <class F, class R, class... T>
void map_elements(On<Host>, const F& f, const Strided<R>& out, const Strided<const T>&... in) {
  constexpr int count = int(sizeof...(T)) + 1;
  if (out.extents.product() == 0) return;
  const detail::MapLoops<count> loops(out.extents, {&out.strides, &in.strides...});
  std::tuple<detail::Feed<T>...> feeds(in.data...);
  R* row = out.data;
  const int last = loops.dims - 1;
  const index_t length = loops.extents[last];
  index_t index[max_dims + 1] = {};

  [&]<std::size_t... K>(std::index_sequence<K...>) {
    for (;;) {
      (std::get<K>(feeds).start(loops.strides[last][K + 1], length), ...);
      for (index_t i = 0; i < length; i += detail::map_chunk) {
        const index_t n = length - i < detail::map_chunk ? length - i : detail::map_chunk;
        detail::map_row(f, row + i, n, std::get<K>(feeds).chunk(i, n)...);
      }
      int d = last - 1;
      for (; d >= 0; --d) {
        row += loops.strides[d][0];
        (std::get<K>(feeds).advance(loops.strides[d][K + 1]), ...);
        if (++index[d] < loops.extents[d]) break;
        index[d] = 0;
        row -= loops.strides[d][0] * loops.extents[d];
        (std::get<K>(feeds).advance(-loops.strides[d][K + 1] * loops.extents[d]), ...);
      }
      if (d < 0) return;
    }
  }(std::index_sequence_for<T...>{});
}

}  // namespace cleave::kernels
