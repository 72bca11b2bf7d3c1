// The loops of a reduction: which dimensions are kept, which are reduced, and the order in which
// elements are visited.
#pragma once

#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/merged_loops.hpp>

namespace cleave::inline v0::kernels::detail {

/// Nested loops over some dimensions of N strided arrays, outermost first, after merging.
template <int N>
struct StridedLoops : cleave::detail::MergedLoops<N> {
  /// The number of combinations of indices.
  index_t size() const {
    index_t product = 1;
    for (int d = 0; d < this->dims; ++d) product *= this->extents[d];
    return product;
  }

  /// Calls visit(offset..), with one offset per array, for every combination of indices, row-major.
  /// @pre size() > 0
  template <class Visit>
  void each(const Visit& visit) const {
    each(visit, std::make_integer_sequence<int, N>{});
  }

 private:
  template <class Visit, int... K>
  void each(const Visit& visit, std::integer_sequence<int, K...>) const {
    index_t index[max_dims] = {}, offset[N] = {};
    for (;;) {
      visit(offset[K]...);
      int d = this->dims - 1;
      for (; d >= 0; --d) {
        ((offset[K] += this->strides[K][d]), ...);
        if (++index[d] < this->extents[d]) break;
        index[d] = 0;
        ((offset[K] -= this->strides[K][d] * this->extents[d]), ...);
      }
      if (d < 0) return;
    }
  }
};

/// The loops over the dimensions besides those of a mask, of arrays with these strides.
template <class... S>
StridedLoops<int(sizeof...(S))> loops_besides(unsigned mask, const Shape& extents,
                                              const S&... strides) {
  StridedLoops<int(sizeof...(S))> loops{};
  for (int d = 0; d < extents.dims; ++d)
    if ((mask >> d & 1u) == 0) loops.push(extents[d], {strides[d]...});
  return loops;
}

/// The same over one array.
struct DimLoops : StridedLoops<1> {
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

}  // namespace cleave::inline v0::kernels::detail
