// How much memory of a device is taken, for tests of what is given back.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>

namespace cleave::testing {

/// Bytes that are taken from the pool of device 0 once all that it was given has run.
inline std::uint64_t in_use() {
  cuda::check(cudaDeviceSynchronize(), "test");
  cudaMemPool_t pool = nullptr;
  std::uint64_t bytes = 0;
  cuda::check(cudaDeviceGetDefaultMemPool(&pool, 0), "test");
  cuda::check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes), "test");
  return bytes;
}

}  // namespace cleave::testing
