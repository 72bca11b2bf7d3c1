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
    device.pools.push_back({.device = &device});
    device.legacy = &streams_.emplace_back();
    device.legacy->device = &device;
  }
  return devices_[std::size_t(index)];
}

CUstream_st* Machine::create_hidden_stream(Device& device) {
  CUstream_st* stream = create_stream(device, cudaStreamNonBlocking);
  handles_.erase(stream);
  return stream;
}

CUstream_st* Machine::create_stream(Device& device, unsigned flags) {
  CUstream_st& stream = streams_.emplace_back();
  stream.device = &device;
  stream.flags = flags;
  stream.serial = ++serials_;
  handles_.insert(&stream);
  return &stream;
}

CUstream_st* Machine::stream(cudaStream_t handle, int current_device) {
  if (handle == nullptr || handle == cudaStreamLegacy) return device(current_device).legacy;
  return handles_.count(handle) != 0 ? handle : nullptr;
}

void Machine::destroy_stream(CUstream_st& stream) {
  handles_.erase(&stream);
  stream.destroyed = true;
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
  // The legacy stream and the blocking streams of its device are ordered with each other.
  CUstream_st& legacy = *stream.device->legacy;
  if (&stream == &legacy) {
    for (CUstream_st& other : streams_) {
      if (other.device != stream.device || &other == &legacy || !other.blocking()) continue;
      if (other.capture != nullptr) other.capture->invalidate();
      if (!reached(other.end())) operation.after.push_back(other.end());
    }
  } else if (stream.blocking() && !reached(legacy.end())) {
    operation.after.push_back(legacy.end());
  }
  const auto placed = std::move(operation.placed);
  stream.queue.push_back(std::move(operation));
  ++stream.enqueued;
  const Point point = stream.end();
  changed_.notify_all();
  if (placed) placed(point);
  if (settings.order == Order::eager) run_ready();
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
        return std::find_if_not(points.begin(), points.end(), reached);
      };
      const Point* next = nullptr;
      if (auto need = unreached(operation.after); need != operation.after.end()) {
        next = &*need;
      } else if (operation.latch != nullptr) {
        const auto& others = operation.latch->after;
        if (auto other = unreached(others); other != others.end()) next = &*other;
      }
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

void Machine::expose(const Operation& operation, const Device& device) {
  ArenaSet arenas = operation.arenas;
  if (arenas.has_own()) {
    arenas = arenas | ArenaSet::of(device.index);
    for (const Device& other : devices_) {
      if (device.peers[std::size_t(other.index)]) arenas = arenas | ArenaSet::of(other.index, 0);
      for (const CUmemPoolHandle_st& pool : other.pools)
        if (pool.readers[std::size_t(device.index)])
          arenas = arenas | ArenaSet::of(other.index, pool.kind);
    }
  }
  memory.expose(arenas);
}

void Machine::run(CUstream_st& stream) {
  Operation& operation = stream.queue.front();
  Device& device = *stream.device;
  if (operation.body && (device.failure == cudaSuccess || operation.bookkeeping)) {
    expose(operation, device);
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

void Machine::observe(const Device& device) {
  std::uint64_t thresholds[arenas_per_device] = {};
  for (const CUmemPoolHandle_st& pool : device.pools) thresholds[pool.kind] = pool.threshold;
  memory.observe(device.index, thresholds);
}

void Machine::nudge(Point point) {
  step(point);
  memory.hide();
}

void Machine::run_ready() {
  for (bool ran = true; ran;) {
    ran = false;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      while (step(streams_[i].end()) == Step::ran) ran = true;
  }
  memory.hide();
}

void Machine::open(Latch& latch, std::vector<Point> after) {
  latch.open = true;
  latch.after = std::move(after);
  changed_.notify_all();
  if (settings.order == Order::eager) run_ready();
}

void Machine::fail(Device& device, cudaError_t error, const std::string& what) {
  if (device.failure == cudaSuccess) device.failure = error;
  report(what + "\n");
}

void Machine::fail(cudaError_t error, const std::string& what) {
  if (running_ != nullptr) fail(*running_, error, what);
}

bool Machine::check_usable(const std::string& what, const void* address, std::size_t bytes) {
  const Place place = memory.place(address, bytes);
  const bool usable = place.on_device()
                          ? place.block != nullptr && place.block->usable && place.arena->exposed()
                          : place.kind == Place::Kind::pinned && place.whole;
  if (!usable)
    fail(cudaErrorIllegalAddress,
         what + " touches memory that is freed or, in its stream, not yet allocated");
  return usable;
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
    device.peers.reset();
    for (CUmemPoolHandle_st& pool : device.pools) pool.readers.reset();
  }
  for (CUstream_st& stream : streams_) stream.planted = cudaSuccess;
  faults_.clear();
}

}  // namespace cuda_stand_in
