// The default memory pool of each device.
#pragma once

#include <cstdint>

#include "machine.hpp"

struct CUmemPoolHandle_st {
  cuda_stand_in::Device* device = nullptr;
  std::uint64_t release_threshold = 0;
};

namespace cuda_stand_in {

/// The machine's lock is held.
CUmemPoolHandle_st& pool_of(Device& device);

}  // namespace cuda_stand_in
