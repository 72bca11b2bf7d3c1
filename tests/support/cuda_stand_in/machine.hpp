// The machine: devices with streams of operations, and the rule by which operations run.
//
// `enqueue` puts an operation behind its stream's others and returns at once. `wait` runs what a
// point of a stream needs, depth first, on the calling thread, and nothing else. What an operation
// needs is everything before it in its stream and the points it was enqueued with. Whoever calls
// holds the machine's lock.
//
// Stand-ins for other libraries enqueue through this interface: see Operation and Latch.
#pragma once

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include <cuda_runtime_api.h>

#include "memory.hpp"
#include "settings.hpp"

namespace cuda_stand_in {

class Capture;
struct Device;

}  // namespace cuda_stand_in

/// The default memory pool of a device.
struct CUmemPoolHandle_st {
  cuda_stand_in::Device* device = nullptr;
};

namespace cuda_stand_in {

/// A place in a stream: behind its first `count` operations.
struct Point {
  CUstream_st* stream = nullptr;
  std::uint64_t count = 0;
};

/// Needs that become known only after an operation is enqueued, such as the other ranks' places in
/// a collective. Until it is open, no host thread gets past the operation.
struct Latch {
  bool open = false;
  std::vector<Point> after;
};

struct Operation {
  std::string name;                   ///< for messages: "kernel of 4x1x1 blocks"
  std::function<void()> body{};       ///< runs under the lock, with memory exposed
  std::vector<Point> after{};         ///< besides all that is before it in its stream
  std::shared_ptr<Latch> latch{};     ///< and after what this says, if there is one
  ArenaSet arenas = ArenaSet::own();  ///< the memory that is exposed
  bool bookkeeping = false;           ///< also runs on a device that has failed
  /// For a captured operation: makes the one that a launch of the graph enqueues. Without it, each
  /// launch enqueues a copy.
  std::function<Operation()> renew{};
  /// Called when the operation has its place in a stream, before anything runs.
  std::function<void(Point)> placed{};
};

struct Device {
  int index = 0;
  CUstream_st* legacy = nullptr;          ///< the default stream
  cudaError_t failure = cudaSuccess;      ///< what every call returns, once an operation has failed
  std::bitset<max_devices> peers;         ///< whose memory kernels may touch
  std::bitset<max_devices> pool_readers;  ///< whose kernels may touch this device's pool
  CUmemPoolHandle_st pool{};
};

}  // namespace cuda_stand_in

/// A stream. Never deleted, so that the use of a destroyed one is noticed.
struct CUstream_st {
  cuda_stand_in::Device* device = nullptr;
  unsigned flags = 0;
  std::uint64_t serial = 0;  ///< 0 for a default stream
  bool destroyed = false;
  std::deque<cuda_stand_in::Operation> queue;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  int queries = 0;  ///< answered with "not ready" since something ran
  cudaError_t planted = cudaSuccess;
  std::shared_ptr<cuda_stand_in::Capture> capture;

  bool legacy() const { return serial == 0; }
  bool blocking() const { return (flags & cudaStreamNonBlocking) == 0; }
  cuda_stand_in::Point end() { return {this, enqueued}; }
};

namespace cuda_stand_in {

/// Queries in a row that are told "not ready" before one runs something.
inline constexpr int patient_queries = 3;

using Lock = std::unique_lock<std::mutex>;

class Machine {
 public:
  static Machine& get();

  Lock lock() { return Lock(mutex_); }

  Settings settings;  ///< under the lock, as everything below
  Memory memory;

  /// @param index  less than settings.devices
  Device& device(int index);
  CUstream_st* create_stream(Device& device, unsigned flags);
  /// The stream of a handle, which for the default streams depends on the thread's device; null
  /// for a handle that is none, or no longer.
  CUstream_st* stream(cudaStream_t handle, int current_device);
  /// A stream without a handle.
  CUstream_st* create_hidden_stream(Device& device);
  /// Invalidates the handle; what is enqueued stays enqueued.
  void destroy_stream(CUstream_st& stream);
  std::deque<CUstream_st>& streams() { return streams_; }

  /// Puts the operation behind the stream's others; a capturing stream's graph takes it instead.
  Point enqueue(CUstream_st& stream, Operation operation);
  static bool reached(Point point) { return point.stream->completed >= point.count; }
  /// Runs what the point needs, and waits for other threads where only they can go on.
  /// @return what the device of the stream has failed with, if it has
  cudaError_t wait(Lock& lock, Point point);
  /// Waits for all that is enqueued on the device.
  cudaError_t wait(Lock& lock, Device& device);
  /// Runs the next operation that the point needs, if there is one that can run.
  void nudge(Point point);
  /// Runs all that can run now, on every stream.
  void run_ready();
  /// Opens the latch: what waits for it goes on.
  void open(Latch& latch, std::vector<Point> after);

  /// Reports a fault and makes the device fail. Within an operation, of the device that runs it.
  void fail(Device& device, cudaError_t error, const std::string& what);
  void fail(cudaError_t error, const std::string& what);
  /// Within an operation: whether all of the range is memory that device code may use now. If it
  /// is not, the device fails, and `what` was about to touch it.
  bool check_usable(const std::string& what, const void* address, std::size_t bytes);
  /// Reports something that is wrong without making a device fail.
  void report(const std::string& lines);
  std::string take_faults();
  void reset(Lock& lock);

 private:
  enum class Step { reached, ran, blocked };

  Machine() : settings(Settings::from_environment()), memory(settings.memory) {}
  Step step(Point point);
  void run(CUstream_st& stream);
  void expose(const Operation& operation, const Device& device);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Device> devices_;
  std::deque<CUstream_st> streams_;
  std::unordered_set<const CUstream_st*> handles_;  ///< of streams that are not destroyed
  std::uint64_t serials_ = 0;
  Device* running_ = nullptr;
  std::string faults_;
};

}  // namespace cuda_stand_in
