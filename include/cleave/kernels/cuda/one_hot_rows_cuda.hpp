// Class indices as one-hot vectors on a GPU: rows of zeros with a single one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// @param loops  array 0 is the row-major position, array 1 the indices
template <class I, class T>
__global__ void one_hot_kernel(const I* indices, Loops<2> loops, std::uint32_t steps,
                               index_t columns, T* out, IndexCheck exists) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const auto index = index_t(indices[at.offset[1]]);
  if (!exists(index)) return;
  const index_t column = index - exists.range.first;
  if (column >= 0 && column < columns) out[at.offset[0] * columns + column] = T(1);
}

}  // namespace cuda::detail

namespace kernels {

/// out[.., c] = (indices[..] == classes.first + c), in the order of the current stream.
///
/// @param indices  any extents and strides; an index outside [0, classes.total) gives a zero row
///                 and is reported by the next wait on the host
/// @param columns  columns of `out`, which is row-major and contiguous, with one row per index
/// @return no index, as the indices have not been checked yet
/// @cost   two launches
/// @throws Error if a launch fails
template <class I, class T>
std::optional<I> one_hot_rows(On<Cuda>, const Strided<const I>& indices, index_t columns, T* out,
                              const RowRange& classes) {
  using namespace cuda::detail;
  const index_t rows = indices.extents.product();
  if (rows == 0) return std::nullopt;
  const Shape all(std::array<index_t, 1>{rows * columns});
  strided_fill(Cuda{}, View::dense(out, dtype_of<T>(), all), T(0));
  const IndexCheck exists(classes);
  const Shape positions = row_major_strides(indices.extents);
  in_pieces(LoopNest<2>(indices.extents, {&positions, &indices.strides}), [&](const auto& piece) {
    const Loops<2> loops(piece);
    const std::uint32_t steps = loops.size();
    cuda::launch_steps("one_hot", one_hot_kernel<I, T>, steps, 1, indices.data, loops, steps,
                       columns, out, exists);
  });
  return std::nullopt;
}

}  // namespace kernels

}  // namespace cleave::inline v0
