// Waits on the host that end, whatever happens.
#pragma once

#include <chrono>
#include <thread>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// Asks for an event until it has come or the time is over; does not throw.
/// @param stop  () -> bool: whether to give up before
/// @return whether it has come, or has failed
template <class Stop>
bool wait_quietly(cudaEvent_t event, std::chrono::steady_clock::time_point deadline, Stop stop) {
  const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is of no capture
  while (cuda::detail::not_ready(cudaEventQuery(event))) {
    if (std::chrono::steady_clock::now() > deadline || stop()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace cleave::detail
