#include "event.hpp"

#include <deque>
#include <unordered_set>

namespace cuda_stand_in {
namespace {

struct Events {
  std::deque<CUevent_st> all;
  std::unordered_set<const CUevent_st*> handles;
  std::uint64_t serials = 0;
};

Events& events() {
  static auto* events = new Events;  // under the machine's lock
  return *events;
}

}  // namespace

CUevent_st* create_event(Device& device) {
  CUevent_st& event = events().all.emplace_back();
  event.device = &device;
  event.serial = ++events().serials;
  events().handles.insert(&event);
  return &event;
}

CUevent_st* find_event(cudaEvent_t handle) {
  return events().handles.count(handle) != 0 ? handle : nullptr;
}

void destroy_event(CUevent_st& event) {
  events().handles.erase(&event);
  event.capture = nullptr;
}

}  // namespace cuda_stand_in
