// Events: names for points of streams, or for places in a graph that is being captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.hpp"

/// An event. Never deleted, so that the use of a destroyed one is noticed.
struct CUevent_st {
  cuda_stand_in::Device* device = nullptr;
  std::uint64_t serial = 0;
  int queries = 0;  ///< answered with "not ready" since it was recorded

  bool recorded = false;
  cuda_stand_in::Point point;                       ///< of the last record, if not captured
  std::shared_ptr<cuda_stand_in::Capture> capture;  ///< if the last record was captured:
  std::vector<std::size_t> nodes;                   ///< what it stands for there
};

namespace cuda_stand_in {

/// Creates an event; the machine's lock is held.
CUevent_st* create_event(Device& device);

/// The event of a handle; null if it is none, or no longer.
CUevent_st* find_event(cudaEvent_t handle);

void destroy_event(CUevent_st& event);

}  // namespace cuda_stand_in
