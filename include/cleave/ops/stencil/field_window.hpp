// The elements of a field that a rank reads: its own part, ghosts that other ranks sent, and what
// edges of the domain mean. A stencil computes most elements from memory as it is; near the border
// of that memory it reads a copy in which every neighbour is in its place.
#pragma once

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

namespace cleave::detail {

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

  constexpr EdgeKind edge(int d, int of_side) const {
    return edges.side[std::size_t(d)][std::size_t(of_side)].kind;
  }
  /// Whether nothing is beyond a side of a dimension.
  constexpr bool ends(int d, int of_side) const { return edge(d, of_side) == EdgeKind::none; }
  /// Whether elements are mirrored there.
  constexpr bool mirrors(int d, int of_side) const {
    return edge(d, of_side) == EdgeKind::neumann || edge(d, of_side) == EdgeKind::mirror;
  }

  /// Read instead of an index in a dimension.
  static constexpr index_t before_first = std::numeric_limits<index_t>::min();
  static constexpr index_t behind_last = before_first + 1;

  /// The index that is read for an index of dimension d, or that there is the value of an edge.
  constexpr index_t resolved(int d, index_t i) const {
    const index_t n = domain[d];
    while (i < 0 || i >= n) {
      const bool low = i < 0;
      switch (edge(d, low ? 0 : 1)) {
        case EdgeKind::periodic: return wraps >> d & 1u ? (i % n + n) % n : i;
        case EdgeKind::neumann: i = low ? -1 - i : 2 * n - 1 - i; break;
        case EdgeKind::mirror:
          if (n == 1) return 0;
          i = low ? -i : 2 * (n - 1) - i;
          break;
        case EdgeKind::value: return low ? before_first : behind_last;
        case EdgeKind::none: return i;
      }
    }
    return i;
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

  /// Writes everything that is read at the indices of a box. @param to  of the extents of the box
  CLEAVE_INLINE void copy(const Box& box, const View& to) const;
};

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

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/field_window_body.hpp>
#endif
