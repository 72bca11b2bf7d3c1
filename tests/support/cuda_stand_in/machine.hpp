// The machine: devices with streams of operations, and the rule by which operations run.
//
// `enqueue` appends an operation to its stream and returns at once. `wait` runs what a point of a
// stream depends on, depth first, on the calling thread, and nothing else. An operation depends on
// all earlier operations in its stream and on the points it was enqueued with. Callers hold the
// machine's lock.
//
// Stand-ins for other libraries enqueue through this interface: see Operation and Latch.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "memory.hpp"
#include "settings.hpp"

namespace cuda_stand_in {

class Capture;

/// A place in a stream: after its first `count` operations.
struct Point {
  CUstream_st* stream = nullptr;
  std::uint64_t count = 0;
};

/// Dependencies that become known only after an operation is enqueued, such as the other ranks'
/// places in a collective. Until the latch is open, no host thread gets past the operation.
struct Latch {
  bool open = false;
  std::vector<Point> after;
};

struct Operation {
  std::string name;                ///< for messages: "kernel of 4x1x1 blocks"
  std::function<void()> body{};    ///< runs under the lock, with memory exposed
  std::vector<Point> after{};      ///< dependencies besides the stream's earlier operations
  std::shared_ptr<Latch> latch{};  ///< adds dependencies when it opens; may be null
  bool bookkeeping = false;        ///< also runs on a device that has failed
  /// For a captured operation: makes the operation that a launch of the graph enqueues. If empty,
  /// each launch enqueues a copy.
  std::function<Operation()> renew{};
  /// Called when the operation has its place in a stream, before any operation runs.
  std::function<void(Point)> placed{};
};

struct Device {
  int index = 0;
  CUstream_st* default_stream = nullptr;
  cudaError_t failure = cudaSuccess;     ///< what every call returns once an operation has failed
  std::size_t held = 0;                  ///< bytes that are allocated, or kept by pools
  std::deque<CUmemPoolHandle_st> pools;  ///< that of cudaMalloc, the default one, and others
};

}  // namespace cuda_stand_in

/// A stream. Never deleted, so that use after destruction is detected.
struct CUstream_st {
  cuda_stand_in::Device* device = nullptr;
  bool destroyed = false;
  std::deque<cuda_stand_in::Operation> queue;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  int queries = 0;  ///< number answered with "not ready" since an operation ran
  cudaError_t planted = cudaSuccess;
  std::shared_ptr<cuda_stand_in::Capture> capture;

  bool is_default() const { return device->default_stream == this; }
  cuda_stand_in::Point end() { return {this, enqueued}; }
};

namespace cuda_stand_in {

/// Consecutive queries that are answered "not ready" before the next one runs an operation.
inline constexpr int idle_queries = 3;

using Lock = std::unique_lock<std::mutex>;

class Machine {
 public:
  static Machine& get();

  Lock lock() { return Lock(mutex_); }

  Settings settings;  ///< protected by the lock, as all members below
  Memory memory;

  /// @param index  less than settings.devices
  Device& device(int index);
  CUstream_st* create_stream(Device& device);
  /// The stream of a handle; default streams depend on the thread's device. Null if the stream was
  /// destroyed.
  CUstream_st* stream(cudaStream_t handle, int current_device);
  std::deque<CUstream_st>& streams() { return streams_; }

  /// Appends the operation to the stream; if the stream is being captured, to its graph instead.
  Point enqueue(CUstream_st& stream, Operation operation);
  static bool reached(Point point) { return point.stream->completed >= point.count; }
  /// Runs what the point depends on, and waits for other threads where only they can make progress.
  /// @return the failure of the stream's device, or cudaSuccess
  cudaError_t wait(Lock& lock, Point point);
  /// Waits for all operations enqueued on the device.
  cudaError_t wait(Lock& lock, Device& device);
  /// Whether the point is reached, as cudaSuccess or cudaErrorNotReady, or the device's failure.
  /// Counts `queries`; those beyond the limit run the next operation that the point depends on.
  cudaError_t query(Point point, int& queries);
  /// Runs all operations that can run now, on every stream. Memory stays exposed.
  void run_ready();
  /// Opens the latch: operations that wait for it can run.
  void open(Latch& latch, std::vector<Point> after);

  /// Reports a fault and makes the device fail. The overload without a device is for operations.
  void fail(Device& device, cudaError_t error, const std::string& what);
  void fail(cudaError_t error, const std::string& what);
  /// Within an operation: the memory at the address that device code may use now; no block if it
  /// may not. Kernels need access to another device, copies do not.
  Place usable(const void* address, std::size_t bytes, bool is_kernel = true);
  /// Whether the whole range is usable. If it is not, the device fails; `what` names the access in
  /// the message.
  bool check_usable(const std::string& what, const void* address, std::size_t bytes,
                    bool is_kernel = true);
  /// Reports an error without making a device fail.
  void report(const std::string& lines);
  std::string take_faults();
  void reset(Lock& lock);

 private:
  enum class Step { reached, ran, blocked };

  Machine() : settings(Settings::from_environment()), memory(settings.memory) {}
  Step step(Point point);
  void run(CUstream_st& stream);

  Device* running_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Device> devices_;
  std::deque<CUstream_st> streams_;
  std::string faults_;
};

}  // namespace cuda_stand_in
