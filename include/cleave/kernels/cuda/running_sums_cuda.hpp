// Running sums along a dimension on a GPU: one thread per line, so that every line is summed in
// order, as on the host.
#pragma once

#include <cstdint>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/host/running_sums.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave {

namespace cuda::detail {

/// @param lines  array 0 is the output, array 1 the input
template <class T, class R>
__global__ void running_sums_kernel(Loops<2> lines, std::uint32_t count, index_t n,
                                    index_t out_step, index_t in_step, R* out, const T* in) {
  using A = kernels::running_t<R>;
  const std::uint32_t line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= count) return;
  const auto at = lines.at(line);
  A sum = A(0);
  for (index_t i = 0; i < n; ++i) {
    sum = kernels::plus(sum, A(in[at.offset[1] + i * in_step]));
    out[at.offset[0] + i * out_step] = R(sum);
  }
}

}  // namespace cuda::detail

namespace kernels {

/// out[.., i, ..] = sum of in[.., k, ..] over k <= i, or over k >= i if `reversed`, in the order of
/// the current stream.
///
/// @param in   any extents and strides
/// @param out  the same extents
/// @cost   one launch per 2^31 lines; few long lines leave most of the GPU idle
/// @throws Error if a launch fails
template <class T, class R>
void running_sums(On<Cuda>, const Strided<const T>& in, int dim, bool reversed,
                  const Strided<R>& out) {
  using namespace cuda::detail;
  if (in.extents.product() == 0) return;
  const index_t n = in.extents[dim];
  Shape lines = in.extents;
  lines[dim] = 1;
  LoopNest<2> nest(lines, {&out.strides, &in.strides});
  index_t out_step = out.strides[dim], in_step = in.strides[dim];
  if (reversed) {
    nest.start[0] += (n - 1) * out_step;
    nest.start[1] += (n - 1) * in_step;
    out_step = -out_step;
    in_step = -in_step;
  }
  in_pieces(nest, [&](const auto& piece) {
    const Loops<2> loops(piece);
    const std::uint32_t count = loops.size();
    cuda::launch_steps("running_sums", running_sums_kernel<T, R>, count, 1, loops, count, n,
                       out_step, in_step, out.data, in.data);
  });
}

}  // namespace kernels

}  // namespace cleave
