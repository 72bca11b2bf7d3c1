// Starts kernels on the current stream of the calling thread.
//
// What needs a device compiler is in kernels/cuda/ alone; the rest of the CUDA side calls the
// runtime, which any compiler can.
#pragma once

#include <utility>

#include <cuda_runtime.h>

#if !defined(__CUDACC__) && !defined(CLEAVE_DEVICE_CODE)
#error "cleave/cuda.hpp contains kernels: compile this file with nvcc (as .cu, or with -x cu)"
#endif

#include <cleave/core/cuda/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::cuda {

/// Threads of a block, unless a kernel has reasons for another number.
inline constexpr int block_threads = 256;

/// Enqueues `kernel(args..)` on the current stream; returns at once.
///
/// @param operation  what the user called, for errors
/// @param blocks     of the grid, each extent at least 1
/// @throws Error     if the launch fails, or something that ran before it has failed
template <class... Parameters, class... Args>
void launch(const char* operation, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
            Args&&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = current_stream().get();
  check(cudaLaunchKernelEx(&config, kernel, Parameters(args)...), operation);
}

/// The same with a thread for each of `steps`, or for each group of `per_thread`. @pre steps > 0
template <class... Parameters, class... Args>
void launch_steps(const char* operation, void (*kernel)(Parameters...), index_t steps,
                  int per_thread, Args&&... args) {
  const index_t tile = index_t(block_threads) * per_thread;
  launch(operation, kernel, dim3(unsigned((steps + tile - 1) / tile)), dim3(block_threads),
         std::forward<Args>(args)...);
}

}  // namespace cleave::cuda
