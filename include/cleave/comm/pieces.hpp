// The pieces of an array that belong to the ranks of a group, as boxes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// Indices [begin, end) of a flat array.
inline Box interval(index_t begin, index_t end) {
  return {Shape::filled(1, begin), Shape::filled(1, end)};
}

/// Piece `index` of `count` equal pieces along a dimension.
inline Box piece_of(const Shape& extents, int dim, index_t index, index_t count) {
  Box box = Box::of(extents);
  const index_t width = extents[dim] / count;
  box.begin[dim] = index * width;
  box.end[dim] = box.begin[dim] + width;
  return box;
}

/// Piece `index` of `count` pieces of a flat array, in whole lines of that many elements: equal,
/// except that the last ones may be shorter or empty.
inline Box flat_piece(index_t elements, index_t index, index_t count, index_t line = 1) {
  const index_t each = ((elements + count - 1) / count + line - 1) / line * line;
  return interval(std::min(each * index, elements), std::min(each * (index + 1), elements));
}
inline std::vector<Box> flat_pieces(index_t elements, index_t count, index_t line = 1) {
  std::vector<Box> pieces;
  for (index_t r = 0; r < count; ++r) pieces.push_back(flat_piece(elements, r, count, line));
  return pieces;
}

/// A dense array of these extents in a flat view, from element `begin` on.
inline View dense_in(const View& flat, index_t begin, const Shape& extents) {
  const index_t offset = begin * index_t(size_of(flat.dtype));
  std::byte* const data =
      flat.data == nullptr ? nullptr : static_cast<std::byte*>(flat.data) + offset;
  return View::dense(data, flat.dtype, extents);
}
inline View piece_in(const View& flat, const Box& piece) {
  return dense_in(flat, piece.begin[0], piece.extents());
}

}  // namespace cleave::inline v0::detail
