// Launches kernels on the current stream of the calling thread.
//
// Only kernels/cuda/ needs a device compiler; all other CUDA code only calls the runtime API, which
// any compiler can.
#pragma once

#include <utility>

#include <cuda_runtime.h>

#if !defined(__CUDACC__) && !defined(CLEAVE_DEVICE_CODE)
#error "cleave/cuda.hpp contains kernels: compile this file with nvcc (as .cu, or with -x cu)"
#endif

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::cuda {

/// Threads per block, unless a kernel needs another number.
inline constexpr int block_threads = 256;

/// Enqueues `kernel(args..)` on the current stream; returns at once.
///
/// @param operation  the user's call, for errors
/// @param blocks     extents of the grid, each at least 1
/// @throws Error     if the launch fails, or work enqueued before it has failed
template <class... Parameters, class... Args>
void launch(const char* operation, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
            Args&&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = current_stream().get();
  check(cudaLaunchKernelEx(&config, kernel, Parameters(args)...), operation);
}

/// The same with one thread per step, or per group of `per_thread` steps. @pre steps > 0
template <class... Parameters, class... Args>
void launch_steps(const char* operation, void (*kernel)(Parameters...), index_t steps,
                  int per_thread, Args&&... args) {
  const index_t tile = index_t(block_threads) * per_thread;
  launch(operation, kernel, dim3(unsigned((steps + tile - 1) / tile)), dim3(block_threads),
         std::forward<Args>(args)...);
}

}  // namespace cleave::inline v0::cuda
