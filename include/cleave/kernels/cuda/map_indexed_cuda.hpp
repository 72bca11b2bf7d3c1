// Functions of global indices and elements on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// @param loops  array 0 is the output, array 1 the global index, then the inputs
template <class F, class T, class... In>
__global__ void map_indexed_kernel(F f, Loops<2 + int(sizeof...(In))> loops, std::uint32_t steps,
                                   T* out, const In*... in) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    out[at.offset[0]] = T(f(at.offset[1], in[at.offset[2 + K]]...));
  }(std::index_sequence_for<In...>{});
}

}  // namespace cuda::detail

namespace kernels {

/// out[i] = f(index, in[i]..), where `index` is the element's row-major index in the global array;
/// in the order of the current stream.
///
/// @param f      callable in device code, trivially copyable
/// @param box    global indices of the elements
/// @param shape  global extents
/// @param out    of the box's extents, in device memory; may be the same view as an input, must not
///               overlap otherwise
/// @param in     likewise
/// @cost   one launch per 2^31 elements
/// @throws Error if a launch fails
template <class F, class T, class... In>
void map_indexed(On<Cuda>, const F& f, const Box& box, const Shape& shape, const Strided<T>& out,
                 const Strided<const In>&... in) {
  using namespace cuda::detail;
  if (out.extents.product() == 0) return;
  constexpr int arrays = 2 + int(sizeof...(In));
  const Shape steps = row_major_strides(shape);
  LoopNest<arrays> nest(out.extents, {&out.strides, &steps, &in.strides...});
  for (int d = 0; d < box.dims(); ++d) nest.start[1] += box.begin[d] * steps[d];
  in_pieces(nest, [&](const auto& piece) {
    const Loops<arrays> loops(piece);
    const std::uint32_t count = loops.size();
    cuda::launch_steps("map_indexed", map_indexed_kernel<F, T, In...>, count, 1, f, loops, count,
                       out.data, in.data...);
  });
}

}  // namespace kernels

}  // namespace cleave::inline v0
