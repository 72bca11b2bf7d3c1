// The default memory pool of each device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine.hpp"

struct CUmemPoolHandle_st {
  cuda_stand_in::Device* device = nullptr;
  std::uint64_t release_threshold = 0;
  std::uint64_t max_in_use = 0;

  void saw(std::uint64_t in_use) { max_in_use = std::max(max_in_use, in_use); }
};

namespace cuda_stand_in {

/// The machine's lock is held.
CUmemPoolHandle_st& pool_of(Device& device);

}  // namespace cuda_stand_in
