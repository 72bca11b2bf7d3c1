// Entry points of the runtime: streams and events.
#include <deque>

#include "capture.hpp"
#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

// Waiting for work that is being captured makes the capture fail.
cudaError_t refuse_capture(CUstream_st& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->invalidate();
  return cudaErrorStreamCaptureUnsupported;
}

/// Waits, after which the host knows what has run on the device.
template <class... What>
cudaError_t wait(Context& context, Device& device, What&&... what) {
  const cudaError_t failure = context.machine.wait(context.lock, what...);
  context.machine.memory.observe(device);
  return failure;
}

/// Runs ask(context, stream).
template <class Ask>
cudaError_t ask_stream(const char* function, cudaStream_t handle, Ask&& ask) {
  return entry(function, {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : ask(context, *stream);
  });
}

/// Runs ask(context, event).
template <class Ask>
cudaError_t ask_event(const char* function, cudaEvent_t event, Ask&& ask) {
  return entry(function, {.event = event}, [&](Context& context) {
    return event->destroyed ? cudaErrorInvalidResourceHandle : ask(context, *event);
  });
}

}  // namespace

// All streams are like non-blocking ones: not ordered with the default stream, which neither the
// library nor its tests use.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return entry("cudaStreamCreateWithFlags", {}, [&](Context& context) {
    *stream = context.machine.create_stream(context.device);
    return cudaSuccess;
  });
}

// Priorities have no effect here.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return ask_stream("cudaStreamDestroy", handle, [](Context&, CUstream_st& stream) {
    stream.destroyed = true;  // what is enqueued stays enqueued
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return ask_stream("cudaStreamSynchronize", handle, [](Context& context, CUstream_st& stream) {
    if (const cudaError_t refused = refuse_capture(stream)) return refused;
    return wait(context, *stream.device, stream.end());
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return ask_stream("cudaStreamQuery", handle, [](Context& context, CUstream_st& stream) {
    if (const cudaError_t refused = refuse_capture(stream)) return refused;
    return context.machine.query(stream.end(), stream.queries);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return entry("cudaDeviceSynchronize", {}, [](Context& context) {
    for (CUstream_st& stream : context.machine.streams())
      if (stream.device == &context.device)
        if (const cudaError_t refused = refuse_capture(stream)) return refused;
    return wait(context, context.device, context.device);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const Arguments arguments{.stream = handle, .event = event};
  return entry("cudaStreamWaitEvent", arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr || event->destroyed) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) {
      if (event->capture->finished()) return cudaErrorCapturedEvent;
      if (stream->capture != nullptr && stream->capture != event->capture) {
        stream->capture->invalidate();
        return cudaErrorStreamCaptureMerge;
      }
      Capture::join(event->capture, *stream, event->nodes);
      return cudaSuccess;
    }
    if (event->point.stream == nullptr) return cudaSuccess;
    if (stream->capture != nullptr) {  // a graph cannot wait for work outside it
      stream->capture->invalidate();
      return cudaErrorStreamCaptureIsolation;
    }
    context.machine.enqueue(*stream, {.name = "wait for an event", .after = {event->point}});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return entry("cudaEventCreateWithFlags", {}, [&](Context& context) {
    static auto* const events = new std::deque<CUevent_st>;  // under the machine's lock
    events->emplace_back().device = &context.device;
    *event = &events->back();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return ask_event("cudaEventDestroy", handle, [](Context&, CUevent_st& event) {
    event.destroyed = true;
    event.capture = nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Arguments arguments{.stream = handle, .event = event};
  return entry("cudaEventRecord", arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (event->destroyed || stream == nullptr || event->device != stream->device)
      return cudaErrorInvalidResourceHandle;
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
    if (event.point.stream == nullptr) return cudaSuccess;
    return wait(context, *event.device, event.point);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return ask_event("cudaEventQuery", handle, [](Context& context, CUevent_st& event) {
    if (event.capture != nullptr) return cudaErrorCapturedEvent;
    if (event.point.stream == nullptr) return cudaSuccess;
    return context.machine.query(event.point, event.queries);
  });
}
