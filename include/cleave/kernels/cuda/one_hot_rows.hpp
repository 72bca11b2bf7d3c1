// Rows of zeros with a single one, on a GPU: class indices as vectors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>
#include <cleave/kernels/cuda/wrong_index.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave {

namespace cuda::detail {

/// @param loops  array 0 is the row-major position, array 1 the indices
template <class I, class T>
__global__ void one_hot_kernel(const I* indices, Loops<2> loops, std::uint32_t steps, index_t first,
                               index_t columns, index_t classes, T* out,
                               FirstWrong::Position* wrong) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const auto index = index_t(indices[at.offset[1]]);
  if (index < 0 || index >= classes) atomicMin(wrong, FirstWrong::Position(at.offset[0]));
  else if (index >= first && index < first + columns)
    out[at.offset[0] * columns + index - first] = T(1);
}

}  // namespace cuda::detail

namespace kernels {

/// out[.., c] = (indices[..] == first + c), in the order of the current stream.
///
/// @param indices  any extents and strides
/// @param first    the class of column 0
/// @param columns  of `out`, which is row-major without gaps: one row per index
/// @param classes  indices lie in [0, classes)
/// @return the first index that does not, if there is one; its row is zero
/// @cost   two launches; the host waits for the answer
/// @throws Error if a launch fails
template <class I, class T>
std::optional<I> one_hot_rows(On<Cuda>, const Strided<const I>& indices, index_t first,
                              index_t columns, index_t classes, T* out) {
  using namespace cuda::detail;
  const index_t rows = indices.extents.product();
  if (rows == 0) return std::nullopt;
  const Shape all(std::array<index_t, 1>{rows * columns});
  strided_fill(Cuda{}, View::dense(out, dtype_of<T>(), all), T(0));
  const FirstWrong wrong("one_hot");
  const Shape positions = row_major_strides(indices.extents);
  in_pieces(LoopNest<2>(indices.extents, {&positions, &indices.strides}), [&](const auto& piece) {
    const Loops<2> loops(piece);
    const std::uint32_t steps = loops.size();
    cuda::launch("one_hot", one_hot_kernel<I, T>,
                 dim3((steps + cuda::block_threads - 1) / cuda::block_threads),
                 dim3(cuda::block_threads), indices.data, loops, steps, first, columns, classes,
                 out, wrong.position());
  });
  return wrong.get(indices);
}

}  // namespace kernels

}  // namespace cleave
