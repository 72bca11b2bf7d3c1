// Entry points of the runtime: capture of streams, and graphs.
#include <algorithm>
#include <utility>
#include <vector>

#include "capture.hpp"
#include "entry.hpp"

using namespace cuda_stand_in;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return entry("cudaStreamBeginCapture", {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->legacy()) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(*stream, mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return entry("cudaStreamEndCapture", {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture == nullptr) return cudaErrorIllegalState;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (&capture->origin() != stream) {
      capture->invalidate();
      return cudaErrorStreamCaptureUnmatched;
    }
    capture->finish();
    if (!capture->valid()) return cudaErrorStreamCaptureInvalidated;
    if (!capture->joined()) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st{capture->take_graph()};
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, ThreadState::get().capture_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* number, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  return entry("cudaStreamGetCaptureInfo", {.stream = handle}, [&](Context& context) {
    if (graph != nullptr || dependencies != nullptr || edges != nullptr || count != nullptr)
      return cudaErrorNotSupported;  // single nodes have no handles here
    const CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
              : stream->capture->valid() ? cudaStreamCaptureStatusActive
                                         : cudaStreamCaptureStatusInvalidated;
    if (number != nullptr && stream->capture != nullptr) *number = stream->capture->number();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  return entry("cudaGraphInstantiate", {}, [&](Context& context) {
    *executable = new CUgraphExec_st{.body = graph->body};
    for (std::size_t lane = 0; lane < graph->body->lanes; ++lane)
      (*executable)->lanes.push_back(context.machine.create_hidden_stream(*graph->body->device));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return entry("cudaGraphLaunch", {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    Machine& machine = context.machine;
    const auto body = executable->body;
    std::vector<Point> before;
    if (executable->previous_launch.stream != nullptr)
      before.push_back(executable->previous_launch);
    const Point begin =
        machine.enqueue(*stream, {.name = "begin of a graph", .after = std::move(before)});
    std::vector<Point> reached;
    for (const GraphNode& node : body->nodes) {
      Operation operation = node.operation.renew ? node.operation.renew() : node.operation;
      operation.after.push_back(begin);
      for (const std::size_t earlier : node.after) operation.after.push_back(reached[earlier]);
      reached.push_back(machine.enqueue(*executable->lanes[node.lane], std::move(operation)));
    }
    // Later nodes first: each wait runs the earlier nodes it depends on, and nothing else.
    std::reverse(reached.begin(), reached.end());
    executable->previous_launch = machine.enqueue(
        *stream, {.name = "end of a graph", .body = [body] {}, .after = std::move(reached)});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return entry("cudaGraphExecDestroy", {}, [&](Context& context) {
    delete executable;
    context.machine.memory.hide();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return entry("cudaGraphDestroy", {}, [&](Context& context) {
    delete graph;
    context.machine.memory.hide();
    return cudaSuccess;
  });
}
