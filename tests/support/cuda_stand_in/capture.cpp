// Entry points of the runtime: capture of streams, and graphs.
#include "capture.hpp"

#include <algorithm>
#include <utility>

#include "entry.hpp"

namespace cuda_stand_in {

GraphBody::~GraphBody() {
  for (void* address : allocations) Machine::get().memory.release(address);
}

Capture::Capture(CUstream_st& origin) : origin_(origin) {
  static unsigned long long captures = 0;  // under the machine's lock
  number_ = ++captures;
}

void Capture::add(CUstream_st& stream, Operation operation) {
  std::vector<std::size_t>& tail = tails_[&stream];
  graph_->nodes.push_back(
      {.operation = std::move(operation), .stream = &stream, .after = std::move(tail)});
  tail = {graph_->nodes.size() - 1};
}

void Capture::join(const std::shared_ptr<Capture>& capture, CUstream_st& stream,
                   const std::vector<std::size_t>& nodes) {
  std::vector<std::size_t>& tail = capture->tails_[&stream];
  tail.insert(tail.end(), nodes.begin(), nodes.end());
  stream.capture = capture;
}

void Capture::finish() {
  finished_ = true;
  origin_.capture = nullptr;
  for (auto& [stream, tail] : tails_) stream->capture = nullptr;
}

bool Capture::joined() {
  std::vector<bool> before(graph_->nodes.size(), false);
  for (const std::size_t node : tails_[&origin_]) before[node] = true;
  for (std::size_t node = before.size(); node-- > 0;)
    if (before[node])
      for (const std::size_t earlier : graph_->nodes[node].after) before[earlier] = true;
  return std::find(before.begin(), before.end(), false) == before.end();
}

}  // namespace cuda_stand_in

using namespace cuda_stand_in;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  return entry("cudaStreamBeginCapture", {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->is_default()) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(*stream);
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

// No call that the project makes depends on the mode.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* number, cudaGraph_t*,
                                     const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                     std::size_t*) {
  return entry("cudaStreamGetCaptureInfo", {.stream = handle}, [&](Context& context) {
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
  return entry("cudaGraphInstantiate", {}, [&](Context&) {
    *executable = new CUgraphExec_st{.body = graph->body};
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
      CUstream_st*& runs_on = executable->streams[node.stream];
      if (runs_on == nullptr) runs_on = machine.create_stream(*node.stream->device);
      reached.push_back(machine.enqueue(*runs_on, std::move(operation)));
    }
    // Later nodes first: each wait runs the earlier nodes it depends on, and nothing else.
    std::reverse(reached.begin(), reached.end());
    executable->previous_launch = machine.enqueue(
        *stream, {.name = "end of a graph", .body = [body] {}, .after = std::move(reached)});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return entry("cudaGraphExecDestroy", {}, [&](Context&) {
    delete executable;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return entry("cudaGraphDestroy", {}, [&](Context&) {
    delete graph;
    return cudaSuccess;
  });
}
