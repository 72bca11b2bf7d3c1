// The elements of a field that a rank reads: its own part, ghosts that other ranks sent, and what
// edges of the domain mean. A stencil computes most elements from memory as it is; near the border
// of that memory it reads a copy in which every neighbour is in its place.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/reach.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// Read instead of an index in a dimension: the value of an edge.
inline constexpr index_t before_first = std::numeric_limits<index_t>::min();
inline constexpr index_t behind_last = before_first + 1;

/// The index that is read for index i of a dimension of n elements, `before_first` or
/// `behind_last`. Without elements, none is repeated: the value of an edge, zero for those that
/// have no value.
///
/// @param wraps  whether periodic images are found at the index in the domain
CLEAVE_HOST_DEVICE constexpr index_t resolved_index(EdgeKind low, EdgeKind high, bool wraps,
                                                    index_t n, index_t i) {
  if (n == 0) return before_first;
  while (i < 0 || i >= n) {
    const bool is_low = i < 0;
    switch (is_low ? low : high) {
      case EdgeKind::periodic: return wraps ? (i % n + n) % n : i;
      case EdgeKind::neumann: i = is_low ? -1 - i : 2 * n - 1 - i; break;
      case EdgeKind::mirror:
        if (n == 1) return 0;
        i = is_low ? -i : 2 * (n - 1) - i;
        break;
      case EdgeKind::value: return is_low ? before_first : behind_last;
      case EdgeKind::none: return i;
    }
  }
  return i;
}

/// Indices of a field, and where what is read there is written.
struct FilledBox {
  Box box;
  View to;
};

/// A field on one rank, without its type.
struct FieldWindow {
  ConstView elements{};  ///< the innermost dimension has stride 1
  Box has{};             ///< their indices; those outside of the domain are periodic images
  ConstView ghosts{};    ///< of indices not in `has`
  Box ghost_box{};       ///< their indices
  Shape domain{};        ///< global extents
  unsigned wraps = 0;    ///< periodic dimensions whose images are found at the index in the domain
  FieldReach reach{};
  EdgesOfDomain edges{};
  const void* of_domain = nullptr;  ///< the Edges
  /// `copy` for several boxes, on the device of the field.
  void (*fill)(const FieldWindow& field, std::span<const FilledBox> boxes) = nullptr;

  constexpr EdgeKind edge(int d, int of_side) const {
    return edges.side[std::size_t(d)][std::size_t(of_side)].kind;
  }
  /// Whether nothing is beyond a side of a dimension.
  constexpr bool ends(int d, int of_side) const { return edge(d, of_side) == EdgeKind::none; }
  /// Whether elements are mirrored there.
  constexpr bool mirrors(int d, int of_side) const {
    return edge(d, of_side) == EdgeKind::neumann || edge(d, of_side) == EdgeKind::mirror;
  }

  /// The index that is read for an index of dimension d. @see resolved_index
  constexpr index_t resolved(int d, index_t i) const {
    return resolved_index(edge(d, 0), edge(d, 1), (wraps >> d & 1u) != 0, domain[d], i);
  }

  /// The elements that are read for results in a box.
  constexpr Box window(Box results) const {
    for (int d = 0; d < results.dims(); ++d) {
      const IndexRange read = image(reach.maps[std::size_t(d)], {results.begin[d], results.end[d]});
      results.begin[d] = read.begin, results.end[d] = read.end;
    }
    return results;
  }
  /// The results in a dimension that read only the indices of a range.
  constexpr IndexRange inner(int d, IndexRange read) const {
    const DimMap& map = reach.maps[std::size_t(d)];
    return {-floor_divide(map.lo - map.den * read.begin, map.num),
            floor_divide(map.den * read.end - 1 - map.hi, map.num) + 1};
  }
  /// The index that a stencil reads at the offset 0.
  constexpr Shape centre(Shape result) const {
    for (int d = 0; d < result.dims; ++d) {
      const DimMap& map = reach.maps[std::size_t(d)];
      result[d] = floor_divide(map.num * result[d], map.den);
    }
    return result;
  }

  /// The results in a box for which all that is read is among `elements`.
  constexpr Box inner(Box results) const {
    for (int d = 0; d < results.dims(); ++d) {
      const IndexRange there = inner(d, {has.begin[d], has.end[d]});
      results.begin[d] = std::max(results.begin[d], there.begin);
      results.end[d] = std::min(results.end[d], there.end);
    }
    return results;
  }

  /// Writes everything that is read at the indices of a box, on the host.
  /// @param to  of the extents of the box
  CLEAVE_INLINE void copy(const Box& box, const View& to) const;
};

/// Calls f(box) for the parts of a box outside of an inner one.
template <class F>
constexpr void each_box_around(Box rest, const Box& inner, const F& f) {
  for (int d = 0; d < rest.dims(); ++d) {
    Box side = rest;
    side.end[d] = inner.begin[d];
    if (!side.empty()) f(side);
    side.begin[d] = inner.end[d], side.end[d] = rest.end[d];
    if (!side.empty()) f(side);
    rest.begin[d] = inner.begin[d], rest.end[d] = inner.end[d];
  }
}

/// The first element of a field in a block of results, and the field's strides.
struct FieldBlock {
  const void* first;
  Shape strides;
};

/// Computes a stencil for the indices of a box.
struct StencilKernel {
  const void* object;
  void (*call)(const void* object, const Box& block, const FieldBlock* fields);
};

/// Computes a stencil for the indices of a box: the inner ones from the fields as they lie in
/// memory, those around from copies.
CLEAVE_INLINE void sweep_stencil(std::span<const FieldWindow> fields, const StencilKernel& kernel,
                                 const Box& results);

}  // namespace cleave::inline v0::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/field_window_body.hpp>
#endif
