// Device memory in use, for tests that memory is freed.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::testing {

/// Bytes allocated from the pool of the current device, without those that streams keep, after all
/// enqueued work has completed.
inline std::uint64_t in_use() {
  cuda::detail::FreedBlocks::Taken kept;
  cuda::detail::FreedBlocks::take_all_of_device(cuda::current_device(), kept);
  cuda::check(cudaDeviceSynchronize(), "test");
  cuda::check(cuda::detail::free_now(kept), "test");
  std::uint64_t bytes = 0;
  cuda::check(cudaMemPoolGetAttribute(cuda::detail::device_pool(cuda::current_device()),
                                      cudaMemPoolAttrUsedMemCurrent, &bytes),
              "test");
  return bytes;
}

}  // namespace cleave::testing
