// Functions of the indices in a few boxes on a GPU: one launch for all boxes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// A box as kernels read it: its indices are numbered from 0, the last dimension fastest.
template <int Dims>
struct NumberedBox {
  index_t begin[Dims] = {};
  std::uint32_t extents[Dims] = {};
  FastDivision by[Dims];
  std::uint32_t size = 0;

  NumberedBox() = default;
  /// @pre fewer than `max_steps` indices
  explicit NumberedBox(const Box& box) : size(std::uint32_t(box.volume())) {
    for (int d = 0; d < Dims && size > 0; ++d) {
      begin[d] = box.begin[d];
      extents[d] = std::uint32_t(box.extent(d));
      by[d] = FastDivision(extents[d]);
    }
  }

  CLEAVE_HOST_DEVICE void index_of(std::uint32_t step, index_t* index) const {
    for (int d = Dims - 1; d > 0; --d) {
      const std::uint32_t rest = by[d].quotient(step);
      index[d] = begin[d] + index_t(step - rest * extents[d]);
      step = rest;
    }
    index[0] = begin[0] + index_t(step);
  }
};

template <int Dims, int Most>
struct NumberedBoxes {
  NumberedBox<Dims> of[Most];
};

/// The row of a grid is the number of a box. `__grid_constant__`: what that number selects is read
/// where it is; parameters indexed by variables would go to local memory otherwise.
template <class F, int Dims, int Most>
__global__ void visit_boxes_kernel(const __grid_constant__ F f,
                                   const __grid_constant__ NumberedBoxes<Dims, Most> boxes) {
  const NumberedBox<Dims>& box = boxes.of[blockIdx.y];
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= box.size) return;
  index_t index[Dims];
  box.index_of(step, index);
  f(int(blockIdx.y), index);
}

}  // namespace cuda::detail

namespace kernels {

/// Calls f(k, index) for all indices of box k, an array of F::dims, in the order of the current
/// stream.
///
/// @param operation  for errors
/// @param f          callable in device code; at most F::most_boxes boxes
/// @cost   one launch, unless a box has 2^31 indices
/// @throws Error if a launch fails
template <class F>
void visit_boxes(On<Cuda> on, const char* operation, const F& f, std::span<const Box> boxes) {
  using namespace cuda::detail;
  NumberedBoxes<F::dims, F::most_boxes> numbered;
  index_t most = 0;
  for (const Box& box : boxes) most = std::max(most, box.volume());
  if (most == 0) return;
  if (most >= max_steps) {
    Box halves[2][std::size_t(F::most_boxes)];
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      int d = 0;
      while (d < F::dims - 1 && boxes[k].extent(d) < 2) ++d;
      halves[0][k] = halves[1][k] = boxes[k];
      halves[0][k].end[d] = halves[1][k].begin[d] = boxes[k].begin[d] + boxes[k].extent(d) / 2;
    }
    for (const auto& half : halves)
      visit_boxes(on, operation, f, std::span<const Box>(half, boxes.size()));
    return;
  }
  for (std::size_t k = 0; k < boxes.size(); ++k) numbered.of[k] = NumberedBox<F::dims>(boxes[k]);
  const index_t tile = cuda::block_threads;
  cuda::launch(operation, visit_boxes_kernel<F, F::dims, F::most_boxes>,
               dim3(unsigned((most + tile - 1) / tile), unsigned(boxes.size())),
               dim3(cuda::block_threads), f, numbered);
}

}  // namespace kernels

}  // namespace cleave::inline v0
