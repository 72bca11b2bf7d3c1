// Replaces the toolkit's <cuda_runtime.h>, so that a host compiler compiles device code.
//
// The runtime's declarations are the toolkit's. This header adds what only nvcc provides, as far as
// the project uses it: the keywords, the built-in variables, barriers, atomic operations and the
// typed launch. Kernels are launched by cudaLaunchKernelEx; `<<<..>>>` is not C++.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

/// For headers with device code: device code can be compiled, although not by nvcc.
#define CLEAVE_DEVICE_CODE 1

#undef __shared__
#define __shared__ static  // blocks run one at a time
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace cuda_stand_in {

/// Stops the thread until all threads of its block have reached this line.
void barrier(const char* file, unsigned line);

/// Enqueues a kernel; `thread` is the work of one thread.
cudaError_t launch(const cudaLaunchConfig_t& config, std::size_t argument_bytes,
                   std::function<void()> thread);

}  // namespace cuda_stand_in

inline void __syncthreads(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  cuda_stand_in::barrier(file, line);
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...),
                "arguments of a kernel are copied to the device byte by byte");
  return cuda_stand_in::launch(
      *config, (std::size_t(0) + ... + sizeof(P)),
      [kernel, copies = std::tuple<P...>(static_cast<P>(std::forward<A>(arguments))...)] {
        std::apply(kernel, copies);
      });
}

#include "device_atomics.hpp"
