// Entry points of the runtime: streams.
#include "capture.hpp"
#include "entry.hpp"
#include "event.hpp"

using namespace cuda_stand_in;

namespace {

// Waiting for work that is being captured makes the capture fail.
cudaError_t refuse_capture(CUstream_st& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->invalidate();
  return cudaErrorStreamCaptureUnsupported;
}

// The end of the stream's enqueued work. For the default stream, all blocking streams count.
Point end_of(Context& context, CUstream_st& stream) {
  if (stream.legacy())
    context.machine.enqueue(stream, {.name = "synchronisation of the default stream"});
  return stream.end();
}

template <class Ask>
cudaError_t ask_stream(const char* function, cudaStream_t handle, Ask&& ask) {
  return entry(function, {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : ask(context, *stream);
  });
}

cudaError_t create(const char* function, cudaStream_t* result, unsigned flags) {
  return entry(function, {}, [&](Context& context) {
    if (result == nullptr || (flags & ~unsigned(cudaStreamNonBlocking)) != 0)
      return cudaErrorInvalidValue;
    *result = context.machine.create_stream(context.device, flags);
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create("cudaStreamCreateWithFlags", stream, flags);
}

// Priorities have no effect here.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return create("cudaStreamCreateWithPriority", stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return entry("cudaDeviceGetStreamPriorityRange", {}, [&](Context&) {
    *least = *greatest = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return ask_stream("cudaStreamDestroy", handle, [](Context& context, CUstream_st& stream) {
    if (stream.legacy()) return cudaErrorInvalidResourceHandle;
    context.machine.destroy_stream(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return ask_stream("cudaStreamSynchronize", handle, [](Context& context, CUstream_st& stream) {
    if (const cudaError_t refused = refuse_capture(stream)) return refused;
    const cudaError_t failure = context.machine.wait(context.lock, end_of(context, stream));
    context.machine.observe(*stream.device);
    return failure;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return ask_stream("cudaStreamQuery", handle, [](Context& context, CUstream_st& stream) {
    if (const cudaError_t refused = refuse_capture(stream)) return refused;
    if (++stream.queries > patient_queries) context.machine.nudge(stream.end());
    if (stream.device->failure != cudaSuccess) return stream.device->failure;
    if (!Machine::reached(stream.end())) return cudaErrorNotReady;
    stream.queries = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
  const Arguments arguments{.stream = handle, .event = event_handle};
  return entry("cudaStreamWaitEvent", arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    CUevent_st* event = find_event(event_handle);
    if (stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (event->capture != nullptr) {
      if (event->capture->finished()) return cudaErrorCapturedEvent;
      if (stream->capture != nullptr && stream->capture != event->capture) {
        stream->capture->invalidate();
        return cudaErrorStreamCaptureMerge;
      }
      if (stream->legacy()) return cudaErrorStreamCaptureImplicit;
      Capture::join(event->capture, *stream, event->nodes);
      return cudaSuccess;
    }
    if (!event->recorded) return cudaSuccess;
    if (stream->capture != nullptr) {  // a graph cannot wait for work outside it
      stream->capture->invalidate();
      return cudaErrorStreamCaptureIsolation;
    }
    context.machine.enqueue(*stream, {.name = "wait for an event", .after = {event->point}});
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return entry("cudaDeviceSynchronize", {}, [](Context& context) {
    for (CUstream_st& stream : context.machine.streams())
      if (stream.device == &context.device)
        if (const cudaError_t refused = refuse_capture(stream)) return refused;
    const cudaError_t failure = context.machine.wait(context.lock, context.device);
    context.machine.observe(context.device);
    return failure;
  });
}
