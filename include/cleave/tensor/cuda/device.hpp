// Which GPU a thread works on.
//
// A rank works on one GPU, the current device of its thread; device tensors do not name theirs.
#pragma once

#include <atomic>
#include <string>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>

namespace cleave {

/// Memory of a GPU, and work in the order of its streams.
struct Cuda {
  static constexpr const char* name = "cuda";
};

namespace cuda {

/// How many GPUs this process can use; 0 where there is no driver.
inline int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

/// @throws Error if there is no GPU, in one sentence
inline void require_device(const char* operation) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return;
  static_cast<void>(cudaGetLastError());
  throw Error(operation,
              std::string("a CUDA device is required, but there is none: ") +
                  (status == cudaSuccess ? "the driver finds no GPU" : cudaGetErrorString(status)));
}

/// The GPU that the calling thread works on.
inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cuda::current_device");
  return device;
}

namespace detail {

/// Whether the calling thread stays with its GPU: it has been told to, or has begun to work there.
inline bool& device_is_chosen() {
  static thread_local bool chosen = false;
  return chosen;
}

}  // namespace detail

/// Whether kernels on one GPU can read and write the memory of another one.
inline bool can_access(int device, int peer) noexcept {
  int reaches = 0;
  if (cudaDeviceCanAccessPeer(&reaches, device, peer) == cudaSuccess) return reaches != 0;
  static_cast<void>(cudaGetLastError());
  return false;
}

/// Makes the calling thread work on another GPU: before it makes tensors or meshes.
/// @throws Error if there is none of that number
inline void set_device(int device) {
  require_device("cuda::set_device");
  check(cudaSetDevice(device), "cuda::set_device");
  detail::device_is_chosen() = true;
}

/// Makes the calling thread, unless it has been told otherwise or has begun to work on another one,
/// work on GPU `index` modulo their number. @throws Error if there is none
inline void choose_device(int index) {
  require_device("cuda::choose_device");
  if (!detail::device_is_chosen()) set_device(index % device_count());
}

/// A property of the current device, asked for once per device and kept.
template <cudaDeviceAttr Attribute>
int device_attribute() {
  static constexpr int devices = 64;
  static std::atomic<int> known[devices] = {};  // value + 1
  const int device = current_device();
  if (device < devices)
    if (const int value = known[device].load(std::memory_order_relaxed); value != 0)
      return value - 1;
  int value = 0;
  check(cudaDeviceGetAttribute(&value, Attribute, device), "cuda::device_attribute");
  if (device < devices) known[device].store(value + 1, std::memory_order_relaxed);
  return value;
}

/// How many blocks can run side by side without sharing a multiprocessor.
inline int multiprocessors() { return device_attribute<cudaDevAttrMultiProcessorCount>(); }

}  // namespace cuda

}  // namespace cleave
