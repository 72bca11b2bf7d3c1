// One pass over any number of arrays: out[i] = f(a[i], b[i], ..).
//
// Dimensions that lie densely behind each other in all arrays are merged. Along the innermost one
// the loop sees contiguous rows only, so that one body serves all strides and vectorises: rows
// that repeat an element or skip elements are copied to a small buffer first, transposed arrays
// tile by tile.
#pragma once

#include <algorithm>
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
  index_t strides[max_dims + 1][N] = {};

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

/// What is handled at once: a part of a row, or parts of several where an input is transposed.
/// Small enough for the first cache.
struct Tile {
  static constexpr index_t elements = 2048;
  index_t rows = 1;
  index_t cols = elements;

  static constexpr Tile square() { return {16, elements / 16}; }
};

/// One input: its elements as contiguous parts of rows.
template <class T>
class Feed {
 public:
  Feed(const T* data, index_t row_step, index_t step)
      : data_(data), row_step_(row_step), step_(step) {}

  /// Whether elements of a column are next to each other, those of a row are not.
  bool transposed() const { return row_step_ == 1 && step_ > 1; }

  /// Goes to another plane of rows.
  void advance(index_t offset) {
    data_ += offset;
    filled_ = 0;
  }

  /// Prepares the tile at (row, col).
  void start(const Tile& tile, index_t row, index_t col) {
    if (!transposed()) return;
    const T* from = data_ + row + col * step_;
    for (index_t j = 0; j < tile.cols; ++j)
      for (index_t i = 0; i < tile.rows; ++i) packed()[i * tile.cols + j] = from[j * step_ + i];
  }

  /// Row `i` of that tile.
  const T* part(const Tile& tile, index_t row, index_t col, index_t i) {
    const T* from = data_ + (row + i) * row_step_ + col * step_;
    if (step_ == 1) return from;
    if (transposed()) return packed() + i * tile.cols;
    if (step_ != 0) {
      for (index_t j = 0; j < tile.cols; ++j) packed()[j] = from[j * step_];
    } else if (filled_ < tile.cols || (row_step_ != 0 && (col == 0 || tile.rows > 1))) {
      const T value = *from;
      for (index_t j = 0; j < tile.cols; ++j) packed()[j] = value;
      filled_ = tile.cols;
    }
    return packed();
  }

 private:
  T* packed() { return reinterpret_cast<T*>(buffer_); }

  const T* data_;
  index_t row_step_;
  index_t step_;
  index_t filled_ = 0;  ///< how much of the buffer repeats one element
  alignas(64) std::byte buffer_[std::size_t(Tile::elements) * sizeof(T)];
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
  const int last = loops.dims - 1;
  const index_t rows = last > 0 ? loops.extents[last - 1] : 1, cols = loops.extents[last];
  const auto row_step = [&](std::size_t k) { return last > 0 ? loops.strides[last - 1][k] : 0; };
  R* plane = out.data;
  index_t index[max_dims + 1] = {};

  [&]<std::size_t... K>(std::index_sequence<K...>) {
    std::tuple<detail::Feed<T>...> feeds(
        detail::Feed<T>(in.data, row_step(K + 1), loops.strides[last][K + 1])...);
    const bool tiled = (std::get<K>(feeds).transposed() || ...);
    const detail::Tile most = tiled ? detail::Tile::square() : detail::Tile{};
    for (;;) {
      for (index_t row = 0; row < rows; row += most.rows) {
        for (index_t col = 0; col < cols; col += most.cols) {
          const detail::Tile tile{std::min(rows - row, most.rows), std::min(cols - col, most.cols)};
          (std::get<K>(feeds).start(tile, row, col), ...);
          for (index_t i = 0; i < tile.rows; ++i)
            detail::map_row(f, plane + (row + i) * row_step(0) + col, tile.cols,
                            std::get<K>(feeds).part(tile, row, col, i)...);
        }
      }
      int d = last - 2;
      for (; d >= 0; --d) {
        plane += loops.strides[d][0];
        (std::get<K>(feeds).advance(loops.strides[d][K + 1]), ...);
        if (++index[d] < loops.extents[d]) break;
        index[d] = 0;
        plane -= loops.strides[d][0] * loops.extents[d];
        (std::get<K>(feeds).advance(-loops.strides[d][K + 1] * loops.extents[d]), ...);
      }
      if (d < 0) return;
    }
  }(std::index_sequence_for<T...>{});
}

}  // namespace cleave::kernels
