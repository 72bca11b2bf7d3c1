#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "capture.hpp"

namespace cuda_stand_in {

Machine& Machine::get() {
  static Machine* machine = new Machine;  // outlives the destructors of static objects that use it
  return *machine;
}

Device& Machine::device(int index) {
  while (int(devices_.size()) <= index) {
    Device& device = devices_.emplace_back();
    device.index = int(devices_.size()) - 1;
    device.pools.push_back({.device = &device, .in_stream_order = false});
    device.pools.push_back({.device = &device});
    device.default_stream = create_stream(device);
  }
  return devices_[std::size_t(index)];
}

CUstream_st* Machine::create_stream(Device& device) {
  streams_.emplace_back().device = &device;
  return &streams_.back();
}

CUstream_st* Machine::stream(cudaStream_t handle, int current_device) {
  if (handle == nullptr) return device(current_device).default_stream;
  return handle->destroyed ? nullptr : handle;
}

Point Machine::enqueue(CUstream_st& stream, Operation operation) {
  if (stream.planted != cudaSuccess) {
    operation.body = [this, error = stream.planted] { fail(error, "a planted error"); };
    stream.planted = cudaSuccess;
  }
  if (stream.capture != nullptr) {
    stream.capture->add(stream, std::move(operation));
    return stream.end();
  }
  const auto placed = std::move(operation.placed);
  stream.queue.push_back(std::move(operation));
  ++stream.enqueued;
  const Point point = stream.end();
  changed_.notify_all();
  if (placed) placed(point);
  return point;
}

// Follows the dependencies of the point down to an operation without open ones, and runs that.
Machine::Step Machine::step(Point point) {
  if (reached(point)) return Step::reached;
  std::size_t depth = 0;
  for (;;) {
    CUstream_st& stream = *point.stream;
    Operation& operation = stream.queue.front();
    if (stream.device->failure == cudaSuccess) {
      if (operation.latch != nullptr && !operation.latch->open) return Step::blocked;
      const auto unreached = [](const std::vector<Point>& points) {
        const auto found = std::find_if_not(points.begin(), points.end(), reached);
        return found == points.end() ? nullptr : &*found;
      };
      const Point* next = unreached(operation.after);
      if (next == nullptr && operation.latch != nullptr) next = unreached(operation.latch->after);
      if (next != nullptr) {
        if (++depth <= streams_.size()) {
          point = *next;
          continue;
        }
        fail(*stream.device, cudaErrorLaunchTimeout,
             "streams wait for each other, among them one for its " + operation.name);
      }
    }
    run(stream);
    return Step::ran;
  }
}

void Machine::run(CUstream_st& stream) {
  Operation& operation = stream.queue.front();
  Device& device = *stream.device;
  if (operation.body && (device.failure == cudaSuccess || operation.bookkeeping)) {
    memory.expose();
    running_ = &device;
    operation.body();
    running_ = nullptr;
  }
  stream.queue.pop_front();
  ++stream.completed;
  stream.queries = 0;
  changed_.notify_all();
}

cudaError_t Machine::wait(Lock& lock, Point point) {
  using Clock = std::chrono::steady_clock;
  Device& device = *point.stream->device;
  auto deadline = Clock::now() + settings.timeout;
  for (;;) {
    const Step done = step(point);
    if (done == Step::ran) continue;
    memory.hide();
    if (done == Step::reached) return device.failure;
    const std::uint64_t completed = point.stream->completed;
    changed_.wait_until(lock, deadline);
    if (point.stream->completed != completed) deadline = Clock::now() + settings.timeout;
    if (Clock::now() < deadline) continue;
    if (device.failure != cudaSuccess) return device.failure;
    fail(device, cudaErrorLaunchTimeout,
         "timed out waiting for work that was never enqueued: " + point.stream->queue.front().name);
  }
}

cudaError_t Machine::wait(Lock& lock, Device& device) {
  // By index, because other threads may create streams during the wait.
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].device == &device) wait(lock, streams_[i].end());
  return device.failure;
}

cudaError_t Machine::query(Point point, int& queries) {
  if (++queries > idle_queries) step(point);
  memory.hide();
  if (point.stream->device->failure != cudaSuccess) return point.stream->device->failure;
  if (!reached(point)) return cudaErrorNotReady;
  queries = 0;
  return cudaSuccess;
}

void Machine::run_ready() {
  for (bool ran = true; ran;) {
    ran = false;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      while (step(streams_[i].end()) == Step::ran) ran = true;
  }
}

void Machine::open(Latch& latch, std::vector<Point> after) {
  latch.open = true;
  latch.after = std::move(after);
  changed_.notify_all();
}

void Machine::fail(Device& device, cudaError_t error, const std::string& what) {
  if (device.failure == cudaSuccess) device.failure = error;
  report(what + "\n");
}

void Machine::fail(cudaError_t error, const std::string& what) {
  if (running_ != nullptr) fail(*running_, error, what);
}

Place Machine::usable(const void* address, std::size_t bytes, bool is_kernel) {
  const Place place = memory.place(address, bytes);
  if (place.block == nullptr || !place.within || !place.block->usable) return {};
  const CUmemPoolHandle_st* pool = place.block->pool;
  const bool reachable = !is_kernel || pool == nullptr || pool->device == running_ ||
                         pool->readers[std::size_t(running_->index)];
  return reachable ? place : Place{};
}

bool Machine::check_usable(const std::string& what, const void* address, std::size_t bytes,
                           bool is_kernel) {
  if (usable(address, bytes, is_kernel).block != nullptr) return true;
  fail(cudaErrorIllegalAddress,
       what + " touches memory that is freed or, in its stream, not yet allocated");
  return false;
}

void Machine::report(const std::string& lines) {
  if (lines.empty()) return;
  std::fprintf(stderr, "cuda stand-in: %s", lines.c_str());
  faults_ += lines;
}

std::string Machine::take_faults() { return std::exchange(faults_, {}); }

void Machine::reset(Lock& lock) {
  for (Device& device : devices_)
    if (device.failure == cudaSuccess) device.failure = cudaErrorUnknown;  // drop, do not run
  for (Device& device : devices_) wait(lock, device);
  for (Device& device : devices_) {
    device.failure = cudaSuccess;
    for (CUmemPoolHandle_st& pool : device.pools) pool.readers.reset();
  }
  for (CUstream_st& stream : streams_) stream.planted = cudaSuccess;
  faults_.clear();
}

}  // namespace cuda_stand_in
