// The runtime's state per host thread.
#pragma once

#include <cuda_runtime_api.h>

namespace cuda_stand_in {

class Recording;

struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  Recording* recording = nullptr;

  static ThreadState& get() {
    thread_local ThreadState state;
    return state;
  }
};

}  // namespace cuda_stand_in
