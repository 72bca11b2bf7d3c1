// Events: names for points in streams, or for nodes of a graph that is being captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine.hpp"

/// An event. Never deleted, so that use after destruction is detected.
struct CUevent_st {
  cuda_stand_in::Device* device = nullptr;
  std::uint64_t serial = 0;
  int queries = 0;  ///< number answered with "not ready" since it was recorded

  bool recorded = false;
  cuda_stand_in::Point point;                       ///< of the last record, if not captured
  std::shared_ptr<cuda_stand_in::Capture> capture;  ///< set if the last record was captured;
  std::vector<std::size_t> nodes;                   ///< the nodes it then stands for
};

namespace cuda_stand_in {

/// Creates an event. The machine's lock is held.
CUevent_st* create_event(Device& device);

/// The event of a handle; null if the handle is invalid or the event was destroyed.
CUevent_st* find_event(cudaEvent_t handle);

void destroy_event(CUevent_st& event);

}  // namespace cuda_stand_in
