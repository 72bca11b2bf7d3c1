// Errors of the CUDA runtime as `cleave::Error`.
//
// Kernels and copies run after the call that enqueued them: a later call reports their errors. With
// CUDA_LAUNCH_BLOCKING=1 in the environment, the call itself does.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include <cleave/core/error.hpp>

namespace cleave::inline v0::cuda {

/// @param operation  the function that the user called, or the kernel that was started
/// @throws Error     unless `status` is success
inline void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // do not report this error again
  throw Error(operation, std::string("CUDA: ") + cudaGetErrorString(status) + " (" +
                             cudaGetErrorName(status) + ")");
}

}  // namespace cleave::inline v0::cuda
