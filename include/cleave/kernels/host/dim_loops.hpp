// The loops of a reduction: which dimensions stay, which disappear, and in which order the
// elements are visited.
#pragma once

#include <cleave/core/shape.hpp>

namespace cleave::kernels::detail {

/// Nested loops over some dimensions of a strided array, outermost first, after merging.
struct DimLoops {
  int dims = 0;
  index_t extents[max_dims];
  index_t strides[max_dims];

  /// Adds an inner loop, or makes it one with the innermost so far.
  void push(index_t extent, index_t stride) {
    if (extent == 1) return;
    if (dims > 0 && strides[dims - 1] == stride * extent) {
      extents[dims - 1] *= extent;
      strides[dims - 1] = stride;
      return;
    }
    extents[dims] = extent;
    strides[dims++] = stride;
  }

  /// The innermost loop, taken off; a loop of one step if there is none.
  struct Loop {
    index_t extent = 1;
    index_t stride = 1;
  };
  Loop pop() {
    if (dims == 0) return {};
    --dims;
    return {extents[dims], strides[dims]};
  }

  /// Calls visit(offset) for every combination of indices, row-major.
  template <class Visit>
  void each(const Visit& visit) const {
    index_t index[max_dims] = {};
    index_t offset = 0;
    for (;;) {
      visit(offset);
      int d = dims - 1;
      for (; d >= 0; --d) {
        offset += strides[d];
        if (++index[d] < extents[d]) break;
        index[d] = 0;
        offset -= strides[d] * extents[d];
      }
      if (d < 0) return;
    }
  }
};

/// The dimensions of an array by what a reduction does with them.
struct ReduceLoops {
  DimLoops kept{};
  DimLoops reduced{};

  /// @param mask  bit d: dimension d is reduced
  ReduceLoops(const Shape& extents, const Shape& strides, unsigned mask) {
    for (int d = 0; d < extents.dims; ++d)
      (mask >> d & 1u ? reduced : kept).push(extents[d], strides[d]);
  }

  /// Whether memory is best read along the reduced dimensions, one result after the other.
  bool along() const {
    if (kept.dims == 0) return true;
    if (reduced.dims == 0) return false;
    return reduced.strides[reduced.dims - 1] < kept.strides[kept.dims - 1];
  }
};

}  // namespace cleave::kernels::detail
