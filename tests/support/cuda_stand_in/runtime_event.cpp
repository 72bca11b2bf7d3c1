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

cudaError_t create(const char* function, cudaEvent_t* result, unsigned flags) {
  return entry(function, {}, [&](Context& context) {
    if (result == nullptr || (flags & ~known_flags) != 0) return cudaErrorInvalidValue;
    *result = create_event(context.device, flags);
    return cudaSuccess;
  });
}

cudaError_t record(const char* function, cudaEvent_t event_handle, cudaStream_t handle,
                   unsigned flags) {
  const Arguments arguments{.stream = handle, .event = event_handle};
  return entry(function, arguments, [&](Context& context) {
    CUevent_st* event = find_event(event_handle);
    CUstream_st* stream = context.stream(handle);
    if (event == nullptr || stream == nullptr || event->device != stream->device)
      return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventRecordDefault) return cudaErrorInvalidValue;
    event->recorded = true;
    event->queries = 0;
    event->capture = stream->capture;
    if (stream->capture != nullptr) {
      event->nodes = stream->capture->tail(*stream);
      return cudaSuccess;
    }
    event->passing = std::make_shared<Passing>();
    event->point = context.machine.enqueue(
        context.lock, *stream, {.name = "record of an event", .body = [passing = event->passing] {
                                  passing->time = std::chrono::steady_clock::now();
                                }});
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return create("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return ask_event("cudaEventDestroy", handle, [](Context&, CUevent_st& event) {
    destroy_event(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record("cudaEventRecord", event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record("cudaEventRecordWithFlags", event, stream, flags);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return ask_event("cudaEventSynchronize", handle, [](Context& context, CUevent_st& event) {
    if (event.capture != nullptr) return cudaErrorCapturedEvent;
    return event.recorded ? context.machine.wait(context.lock, event.point) : cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return ask_event("cudaEventQuery", handle, [](Context& context, CUevent_st& event) {
    if (event.capture != nullptr) return cudaErrorCapturedEvent;
    if (!event.recorded) return cudaSuccess;
    if (++event.queries > patient_queries) context.machine.nudge(context.lock, event.point);
    if (event.device->failure != cudaSuccess) return event.device->failure;
    return Machine::reached(event.point) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return ask_event("cudaEventElapsedTime", start, [&](Context&, CUevent_st& first) {
    const CUevent_st* last = find_event(end);
    if (last == nullptr || !first.recorded || !last->recorded || first.capture != nullptr ||
        last->capture != nullptr || ((first.flags | last->flags) & cudaEventDisableTiming) != 0)
      return cudaErrorInvalidResourceHandle;
    if (!Machine::reached(first.point) || !Machine::reached(last->point)) return cudaErrorNotReady;
    const std::chrono::duration<float, std::milli> time = last->passing->time - first.passing->time;
    *milliseconds = time.count();
    return cudaSuccess;
  });
}
