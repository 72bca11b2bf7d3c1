// Dimensions that become other dimensions with the same elements in row-major order: whether their
// shards stay, and which boxes of one side a range of the other side is. Constexpr arithmetic.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/core/shape.hpp>
#include <cleave/placement/ownership.hpp>

namespace cleave::inline v0 {

/// Dimensions [first, first + operand) of an operand become dimensions [first, first + result) of
/// the result. Other dimensions stay as they are.
struct Regrouping {
  int first = 0;
  int operand = 0;
  int result = 0;  ///< 0: there is no regrouping

  friend constexpr bool operator==(const Regrouping&, const Regrouping&) = default;
};

namespace detail {

/// Whether the shards of [0, n), each index `length` elements, contain the same elements as those
/// of [0, m), each index `other` elements. @pre n * length == m * other
///
/// @param parts  how many shards each axis makes; the axes apply one after the other
constexpr bool shards_agree(index_t n, index_t length, index_t m, index_t other,
                            const index_t* parts, int axes) {
  if (axes == 0 || length == other) return true;
  index_t cut = 1;
  for (int a = 0; a < axes; ++a) cut *= parts[a];
  if (n % cut == 0 && m % cut == 0) return true;
  IndexRange before{-1, -1};
  for (index_t part = 0; part < parts[0]; ++part) {
    const IndexRange a = shard_range(n, parts[0], part), b = shard_range(m, parts[0], part);
    if (a.size() * length != b.size() * other) return false;
    if (!(before == IndexRange{a.size(), b.size()}) &&
        !shards_agree(a.size(), length, b.size(), other, parts + 1, axes - 1))
      return false;
    before = {a.size(), b.size()};
  }
  return true;
}

/// The product of the extents of dimensions [first, end).
constexpr index_t extent_of(const Shape& shape, int first, int end) {
  index_t n = 1;
  for (int d = first; d < end; ++d) n *= shape[d];
  return n;
}

/// Dimensions [operand, operand_end) of an operand that become dimensions [result, result_end).
struct DimGroup {
  int operand, operand_end, result, result_end;
};

/// The smallest group that begins at dimension i of an operand and j of a result, both within
/// [.., end) dimensions with equally many elements; with the extents of 1 behind it.
/// @pre no extent is 0
constexpr DimGroup group_at(const Shape& from, int i, int end_i, const Shape& to, int j,
                            int end_j) {
  DimGroup g{i, i, j, j};
  index_t n = 1, m = 1;
  do {
    if (g.operand_end < end_i && (n <= m || g.result_end == end_j)) n *= from[g.operand_end++];
    else m *= to[g.result_end++];
  } while (n != m);
  while (g.operand_end < end_i && from[g.operand_end] == 1) ++g.operand_end;
  while (g.result_end < end_j && to[g.result_end] == 1) ++g.result_end;
  return g;
}

/// Calls f(box) for each of the boxes, of dimensions [first, end) of an array, that together are
/// the indices [range.begin, range.end) counted row-major through these dimensions; in order, at
/// most 2 (end - first) - 1. Other dimensions of `box` stay.
template <class F>
constexpr void each_box_of_range(const Shape& shape, int first, int end, IndexRange range, Box box,
                                 const F& f) {
  if (range.size() <= 0) return;
  const index_t row = extent_of(shape, first + 1, end);
  const auto rows = [&](index_t begin, index_t after) {
    box.begin[first] = begin, box.end[first] = after;
  };
  const auto part_of_row = [&](index_t at, IndexRange part) {
    rows(at, at + 1);
    each_box_of_range(shape, first + 1, end, part, box, f);
  };
  const index_t from = range.begin / row, last = range.end / row;
  const index_t skipped = range.begin % row, rest = range.end % row;
  if (from == last) return part_of_row(from, {skipped, rest});
  if (skipped > 0) part_of_row(from, {skipped, row});
  const index_t begin = from + (skipped > 0);
  if (begin < last) {
    rows(begin, last);
    for (int d = first + 1; d < end; ++d) box.begin[d] = 0, box.end[d] = shape[d];
    f(box);
  }
  if (rest > 0) part_of_row(last, {0, rest});
}

}  // namespace detail

}  // namespace cleave::inline v0
