// Shared by the stand-ins' own tests: scoped streams, events, memory and graphs, checks of returned
// errors, operations on one int, and reports of faults.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include "cuda_stand_in/stand_in.hpp"

/// CHECKs that a call succeeds, and names the error if it does not.
#define CHECK_CUDA(call) CHECK(std::string(cudaGetErrorName(call)) == "cudaSuccess")
/// CHECKs that a call returns the given error.
#define CHECK_ERROR(call, error) CHECK(std::string(cudaGetErrorName(call)) == #error)

namespace cuda_stand_in {

/// Starts a test with the machine in its initial state, with four devices. The test must leave no
/// fault.
class Fresh {
 public:
  Fresh() { start_again(4); }
  ~Fresh() {
    cudaDeviceSynchronize();
    CHECK(take_faults() == "");
    start_again(1);
  }
  Fresh(const Fresh&) = delete;  // there is one machine

 private:
  static void start_again(int devices) {
    set_devices(devices);
    cudaSetDevice(0);
    reset();
    set_thread_order(ThreadOrder::forward);
    set_peer_access(true);
    set_memory(0);
  }
};

struct Stream {
  Stream() { CHECK_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;  // owns the handle
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { CHECK_CUDA(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;  // owns the handle
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

/// Device memory from cudaMalloc.
template <class T>
struct Array {
  explicit Array(std::size_t count) : size(count) {
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    CHECK_CUDA(cudaMemcpyAsync(data, values.data(), size * sizeof(T), cudaMemcpyDefault, nullptr));
    CHECK_CUDA(cudaStreamSynchronize(nullptr));
  }
  ~Array() { cudaFree(data); }
  Array(const Array&) = delete;  // owns the memory
  operator T*() const { return data; }

  /// The contents after all work enqueued on the stream.
  std::vector<T> read(cudaStream_t stream) const {
    std::vector<T> values(size);
    CHECK_CUDA(
        cudaMemcpyAsync(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost, stream));
    return values;
  }

  T* data = nullptr;
  std::size_t size;
};

/// The captured operations of `enqueue()`, as an executable graph.
class Graph {
 public:
  template <class F>
  Graph(cudaStream_t stream, F&& enqueue) {
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph_));
    CHECK_CUDA(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;  // owns the handles

  void launch(cudaStream_t stream) const { CHECK_CUDA(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

template <class... P, class... A>
cudaError_t launch_on(cudaStream_t stream, dim3 blocks, dim3 threads, void (*kernel)(P...),
                      A&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...);
}

/// A kernel that adds 1 to each of `count` elements.
static __global__ void increment(int* values, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) ++values[i];
}

/// A kernel that sets each of `count` elements.
static __global__ void assign(int* values, int count, int value) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = value;
}

inline constexpr int poisoned_int = int(0xCDCDCDCDu);

/// Operations on one int.
inline void add_one(cudaStream_t stream, int* value) {
  CHECK_CUDA(launch_on(stream, 1, 1, increment, value, 1));
}
inline void set_to(cudaStream_t stream, int* value, int number) {
  CHECK_CUDA(launch_on(stream, 1, 1, assign, value, 1, number));
}
inline void copy(cudaStream_t stream, int* to, const int* from) {
  CHECK_CUDA(cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDefault, stream));
}
/// The value after all work enqueued on the stream.
inline int read(cudaStream_t stream, const int* value) {
  int result = 0;
  copy(stream, &result, value);
  return result;
}

inline void record(cudaStream_t stream, cudaEvent_t event) {
  CHECK_CUDA(cudaEventRecord(event, stream));
}
inline void wait_for(cudaStream_t stream, cudaEvent_t event) {
  CHECK_CUDA(cudaStreamWaitEvent(stream, event, 0));
}

/// Whether the text contains `what`; prints it if not.
inline bool says(const std::string& text, const char* what) {
  const bool found = text.find(what) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

/// What was reported of a device that has failed, which works again.
inline std::string failure() {
  std::string faults = take_faults();
  reset();
  return faults;
}

/// Launches one block, which must fail. @return what is reported
template <class... P, class... A>
std::string fault_of(unsigned threads, void (*kernel)(P...), A... arguments) {
  const Stream stream;
  CHECK_CUDA(launch_on(stream, 1, threads, kernel, arguments...));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  return failure();
}

/// What most tests use.
struct Setup {
  Fresh fresh;
  Stream stream, other;
  Event event;
  Array<int> array{std::vector{0}}, result{std::vector{-1}};
};

}  // namespace cuda_stand_in
