// The loops of a reduction: which dimensions are kept, which are reduced, and the order in which
// elements are visited.
#pragma once

#include <cleave/core/shape.hpp>
#include <cleave/tensor/merged_loops.hpp>

namespace cleave::kernels::detail {

/// Nested loops over some dimensions of a strided array, outermost first, after merging.
struct DimLoops : cleave::detail::MergedLoops<1> {
  index_t stride(int d) const { return strides[0][d]; }

  /// The innermost loop, as removed by `pop`; a loop of one step if there is none.
  struct Loop {
    index_t extent = 1;
    index_t stride = 1;
  };
  Loop pop() {
    if (dims == 0) return {};
    --dims;
    return {extents[dims], stride(dims)};
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
        offset += stride(d);
        if (++index[d] < extents[d]) break;
        index[d] = 0;
        offset -= stride(d) * extents[d];
      }
      if (d < 0) return;
    }
  }
};

/// The loops over the kept and over the reduced dimensions of an array.
struct ReduceLoops {
  DimLoops kept{};
  DimLoops reduced{};

  /// @param mask  bit d: dimension d is reduced
  ReduceLoops(const Shape& extents, const Shape& strides, unsigned mask) {
    for (int d = 0; d < extents.dims; ++d)
      (mask >> d & 1u ? reduced : kept).push(extents[d], {strides[d]});
  }

  /// Whether memory is best read along the reduced dimensions, one result after another.
  bool along() const {
    if (kept.dims == 0) return true;
    if (reduced.dims == 0) return false;
    return reduced.stride(reduced.dims - 1) < kept.stride(kept.dims - 1);
  }
};

}  // namespace cleave::kernels::detail
