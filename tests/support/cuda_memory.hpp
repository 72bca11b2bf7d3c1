// Device memory in use, for tests that memory is freed.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>

namespace cleave::testing {

/// Bytes allocated from the pool of device 0 after all enqueued work has completed.
inline std::uint64_t in_use() {
  cuda::check(cudaDeviceSynchronize(), "test");
  cudaMemPool_t pool = nullptr;
  std::uint64_t bytes = 0;
  cuda::check(cudaDeviceGetDefaultMemPool(&pool, 0), "test");
  cuda::check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes), "test");
  return bytes;
}

}  // namespace cleave::testing
