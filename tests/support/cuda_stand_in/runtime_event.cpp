// Entry points of the runtime: events.
#include "capture.hpp"
#include "entry.hpp"
#include "event.hpp"

using namespace cuda_stand_in;

namespace {

constexpr unsigned known_flags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

template <class Ask>
cudaError_t ask_event(const char* function, cudaEvent_t handle, Ask&& ask) {
  return entry(function, {.event = handle}, [&](Context& context) {
    CUevent_st* event = find_event(handle);
    return event == nullptr ? cudaErrorInvalidResourceHandle : ask(context, *event);
  });
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return entry("cudaEventCreateWithFlags", {}, [&](Context& context) {
    if (event == nullptr || (flags & ~known_flags) != 0) return cudaErrorInvalidValue;
    *event = create_event(context.device);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return ask_event("cudaEventDestroy", handle, [](Context&, CUevent_st& event) {
    destroy_event(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t handle) {
  const Arguments arguments{.stream = handle, .event = event_handle};
  return entry("cudaEventRecord", arguments, [&](Context& context) {
    CUevent_st* event = find_event(event_handle);
    CUstream_st* stream = context.stream(handle);
    if (event == nullptr || stream == nullptr || event->device != stream->device)
      return cudaErrorInvalidResourceHandle;
    event->recorded = true;
    event->queries = 0;
    event->capture = stream->capture;
    if (stream->capture != nullptr) event->nodes = stream->capture->tail(*stream);
    else event->point = context.machine.enqueue(*stream, {.name = "record of an event"});
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return ask_event("cudaEventSynchronize", handle, [](Context& context, CUevent_st& event) {
    if (event.capture != nullptr) return cudaErrorCapturedEvent;
    if (!event.recorded) return cudaSuccess;
    const cudaError_t failure = context.machine.wait(context.lock, event.point);
    context.machine.observe(*event.device);
    return failure;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return ask_event("cudaEventQuery", handle, [](Context& context, CUevent_st& event) {
    if (event.capture != nullptr) return cudaErrorCapturedEvent;
    if (!event.recorded) return cudaSuccess;
    if (++event.queries > patient_queries) context.machine.nudge(event.point);
    if (event.device->failure != cudaSuccess) return event.device->failure;
    return Machine::reached(event.point) ? cudaSuccess : cudaErrorNotReady;
  });
}
