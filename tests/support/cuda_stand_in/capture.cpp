#include "capture.hpp"

#include <atomic>
#include <utility>

#include "thread_state.hpp"

namespace cuda_stand_in {

GraphBody::~GraphBody() {
  Memory& memory = Machine::get().memory;
  for (void* address : allocations) memory.arena_of(address)->end(address);
}

Capture::Capture(CUstream_st& origin, cudaStreamCaptureMode mode) : origin_(origin), mode_(mode) {
  static std::atomic<unsigned long long> captures = 0;
  number_ = ++captures;
  graph_->device = origin.device;
  lane(origin);
}

Capture::Lane& Capture::lane(CUstream_st& stream) {
  const auto [found, is_new] = lanes_.try_emplace(&stream);
  if (is_new) found->second.index = graph_->lanes++;
  return found->second;
}

void Capture::add(CUstream_st& stream, Operation operation) {
  Lane& own = lane(stream);
  graph_->nodes.push_back(
      {.operation = std::move(operation), .lane = own.index, .after = std::move(own.tail)});
  own.tail = {graph_->nodes.size() - 1};
}

void Capture::join(const std::shared_ptr<Capture>& capture, CUstream_st& stream,
                   const std::vector<std::size_t>& nodes) {
  Lane& own = capture->lane(stream);
  own.tail.insert(own.tail.end(), nodes.begin(), nodes.end());
  stream.capture = capture;
}

void Capture::finish() {
  finished_ = true;
  // The last stream may hold the last reference to this object.
  std::shared_ptr<Capture> keep;
  for (auto& [stream, own] : lanes_) keep = std::exchange(stream->capture, nullptr);
}

bool Capture::tolerates_unsafe_calls() const {
  if (ThreadState::get().capture_mode == cudaStreamCaptureModeRelaxed) return true;
  switch (mode_) {
    case cudaStreamCaptureModeGlobal: return false;
    case cudaStreamCaptureModeThreadLocal: return thread_ != std::this_thread::get_id();
    case cudaStreamCaptureModeRelaxed: return true;
  }
  return false;
}

cudaError_t refuse_while_capturing(Machine& machine) {
  cudaError_t refused = cudaSuccess;
  for (CUstream_st& stream : machine.streams()) {
    if (stream.capture == nullptr || stream.capture->tolerates_unsafe_calls()) continue;
    stream.capture->invalidate();
    refused = cudaErrorStreamCaptureUnsupported;
  }
  return refused;
}

bool Capture::joined() {
  std::vector<bool> before(graph_->nodes.size(), false);
  for (const std::size_t node : lane(origin_).tail) before[node] = true;
  for (std::size_t node = before.size(); node-- > 0;)
    if (before[node])
      for (const std::size_t earlier : graph_->nodes[node].after) before[earlier] = true;
  for (const bool one : before)
    if (!one) return false;
  return true;
}

}  // namespace cuda_stand_in
