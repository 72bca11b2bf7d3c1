// Nested loops over several strided arrays: the plan of the host, and its iteration by threads.
//
// The host sorts and merges the dimensions (`LoopNest`), so that contiguous dimensions become one
// loop. A kernel numbers the steps of all loops from 0 and assigns one to each thread (`Loops`),
// which computes its offsets by multiplications: step numbers have 32 bits, and arrays with more
// steps are processed in pieces. Offsets have 64 bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/merged_loops.hpp>

namespace cleave::inline v0::cuda::detail {

using cleave::detail::magnitude;

/// The largest number of loops: one per dimension and one over the bytes of an element.
inline constexpr int max_loops = max_dims + 1;

/// The host's plan: loops over N arrays, at least one loop. Array 0 determines their order.
template <int N>
struct LoopNest : cleave::detail::MergedLoops<N> {
  using Base = cleave::detail::MergedLoops<N>;
  using Base::dims, Base::extents, Base::strides;
  index_t start[N] = {};  ///< offset of the first step in each array, in elements

  /// Loops by descending strides of array 0, merged where they continue one another in all arrays.
  /// @pre no extent is 0
  LoopNest(const Shape& shape, const std::array<const Shape*, std::size_t(N)>& of) {
    std::array<index_t, std::size_t(N)> step;
    for (const index_t d : cleave::detail::descending_order(shape.dims, of)) {
      for (std::size_t k = 0; k < std::size_t(N); ++k) step[k] = (*of[k])[int(d)];
      Base::push(shape[int(d)], step);
    }
    step.fill(1);
    if (dims == 0) Base::append(1, step);  // a single element
  }

  int inner() const { return dims - 1; }

  /// Whether the innermost loop has stride 1 in all arrays.
  bool inner_is_dense() const {
    for (int k = 0; k < N; ++k)
      if (strides[k][inner()] != 1) return false;
    return true;
  }

  index_t size() const {
    index_t n = 1;
    for (int d = 0; d < dims; ++d) n *= extents[d];
    return n;
  }

  /// Whether rows of array k are contiguous and begin at multiples of `width`.
  bool rows_are_packs(int k, int width) const {
    return strides[k][inner()] == 1 && outer_strides_are_multiples(k, width);
  }
  bool outer_strides_are_multiples(int k, int width) const {
    for (int d = 0; d < inner(); ++d)
      if (strides[k][d] % width != 0) return false;
    return true;
  }

  /// Changes the unit to parts of elements: an element has `parts` contiguous parts.
  void split_elements(index_t parts) {
    for (int k = 0; k < N; ++k)
      for (int d = 0; d < dims; ++d) strides[k][d] *= parts;
    std::array<index_t, std::size_t(N)> step;
    step.fill(1);
    Base::merge(parts, step);
  }

  /// Changes the unit to groups of `parts` elements. @pre `inner_is_dense`; `parts` divides the
  /// extent of the innermost loop and all other strides
  void join_elements(index_t parts) {
    extents[inner()] /= parts;
    for (int k = 0; k < N; ++k)
      for (int d = 0; d < inner(); ++d) strides[k][d] /= parts;
    if (extents[inner()] == 1 && dims > 1) --dims;
  }

  /// Makes loop d the innermost one; the others keep their order.
  void move_inside(int d) {
    for (; d < inner(); ++d) {
      std::swap(extents[d], extents[d + 1]);
      for (int k = 0; k < N; ++k) std::swap(strides[k][d], strides[k][d + 1]);
    }
  }

  /// Removes loop d: the nest runs for its first index only. @pre there is another loop
  void remove(int d) {
    for (; d < inner(); ++d) {
      extents[d] = extents[d + 1];
      for (int k = 0; k < N; ++k) strides[k][d] = strides[k][d + 1];
    }
    --dims;
  }
};

/// Kernels have fewer steps than this.
inline constexpr index_t max_steps = index_t{1} << 31;

/// Calls launch(nest) for pieces of fewer than `max_steps` steps, halving outer loops first.
template <int N, class Launch>
void in_pieces(const LoopNest<N>& nest, const Launch& launch) {
  if (nest.size() < max_steps) return launch(nest);
  int d = 0;
  while (nest.extents[d] == 1) ++d;
  constexpr index_t unit = 1024;  // keeps the alignment for vectorised accesses
  index_t half = nest.extents[d] / 2;
  if (d == nest.inner()) half = half / unit * unit;
  LoopNest<N> head = nest, tail = nest;
  head.extents[d] = half;
  tail.extents[d] -= half;
  for (int k = 0; k < N; ++k) tail.start[k] += half * nest.strides[k][d];
  in_pieces(head, launch);
  in_pieces(tail, launch);
}

/// Division by a number that is the same for all threads: a multiplication and a shift.
class FastDivision {
 public:
  FastDivision() = default;
  /// @pre 0 < d < 2^31
  explicit FastDivision(std::uint32_t d) {
    while (std::uint64_t{1} << shift_ < d) ++shift_;
    multiplier_ = std::uint32_t((((std::uint64_t{1} << shift_) - d) << 32) / d + 1);
  }

  /// @pre n < 2^31
  CLEAVE_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const {
    return (std::uint32_t(std::uint64_t(n) * multiplier_ >> 32) + n) >> shift_;
  }

 private:
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

/// The position of a step: its offset in each array, and its index in the innermost loop.
template <int N>
struct Place {
  index_t offset[N];
  std::uint32_t inner;
};

/// The loops as passed to kernels, innermost first.
template <int N>
struct Loops {
  int dims = 1;
  std::uint32_t extents[max_loops] = {};
  FastDivision by[max_loops];
  index_t strides[N][max_loops] = {};
  index_t start[N] = {};

  /// @param width  elements of the innermost loop per step; the last step may have fewer
  /// @pre fewer than `max_steps` steps
  explicit Loops(const LoopNest<N>& nest, int width = 1) : dims(nest.dims) {
    for (int d = 0; d < dims; ++d) {
      const int from = nest.inner() - d;
      const index_t extent = d == 0 ? (nest.extents[from] + width - 1) / width : nest.extents[from];
      extents[d] = std::uint32_t(extent);
      by[d] = FastDivision(extents[d]);
      for (int k = 0; k < N; ++k) strides[k][d] = nest.strides[k][from] * (d == 0 ? width : 1);
    }
    for (int k = 0; k < N; ++k) start[k] = nest.start[k];
  }

  /// The number of steps.
  std::uint32_t size() const {
    std::uint32_t n = 1;
    for (int d = 0; d < dims; ++d) n *= extents[d];
    return n;
  }

  CLEAVE_HOST_DEVICE Place<N> at(std::uint32_t step) const {
    Place<N> place;
    for (int k = 0; k < N; ++k) place.offset[k] = start[k];
    descend<0>(step, place);
    return place;
  }

 private:
  /// Recursion over constants: kernel parameters indexed by variables would go to local memory.
  template <int D>
  CLEAVE_HOST_DEVICE void descend(std::uint32_t step, Place<N>& place) const {
    const bool last = D + 1 == max_loops || D + 1 >= dims;
    const std::uint32_t rest = last ? 0 : by[D].quotient(step);
    const std::uint32_t index = step - rest * extents[D];
    if (D == 0) place.inner = index;
    for (int k = 0; k < N; ++k) place.offset[k] += index_t(index) * strides[k][D];
    if constexpr (D + 1 < max_loops) {
      if (!last) descend<D + 1>(rest, place);
    }
  }
};

}  // namespace cleave::inline v0::cuda::detail
