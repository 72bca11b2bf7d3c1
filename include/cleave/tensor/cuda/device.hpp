// The GPU that a thread uses.
//
// A rank uses one GPU, the current device of its thread; device tensors do not store their device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/cuda_error.hpp>

namespace cleave::inline v0 {

/// The device type of GPUs: device memory, and work in stream order.
struct Cuda {
  static constexpr const char* name = "cuda";
};

namespace cuda {

/// The number of GPUs that this process can use; 0 without a driver.
inline int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

/// @throws Error if there is no GPU
inline void require_device(const char* operation) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return;
  static_cast<void>(cudaGetLastError());
  throw Error(operation,
              std::string("a CUDA device is required, but none is available: ") +
                  (status == cudaSuccess ? "the driver finds no GPU" : cudaGetErrorString(status)));
}

/// The current device of the calling thread.
inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cuda::current_device");
  return device;
}

namespace detail {

/// Whether the calling thread keeps its current device: it has set one, or already uses it.
inline bool& device_is_chosen() {
  static thread_local bool chosen = false;
  return chosen;
}

/// The calling thread's T for its current device, made at the first call.
template <class T>
T& of_current_device(const char* operation) {
  static thread_local std::array<std::unique_ptr<T>, 64> objects;
  const int device = current_device();
  if (device >= int(objects.size()))
    throw Error(operation, "device " + std::to_string(device) +
                               " is not supported: device numbers must be below 64");
  std::unique_ptr<T>& object = objects[std::size_t(device)];
  if (object == nullptr) object = std::make_unique<T>();
  return *object;
}

}  // namespace detail

/// Whether kernels on `device` can read and write the memory of `peer`.
inline bool can_access(int device, int peer) noexcept {
  int reaches = 0;
  if (cudaDeviceCanAccessPeer(&reaches, device, peer) == cudaSuccess) return reaches != 0;
  static_cast<void>(cudaGetLastError());
  return false;
}

/// Sets the current device of the calling thread, before it creates tensors or meshes.
/// @throws Error if there is no device of that number
inline void set_device(int device) {
  require_device("cuda::set_device");
  check(cudaSetDevice(device), "cuda::set_device");
  detail::device_is_chosen() = true;
}

/// Sets the current device of the calling thread to `index` modulo the number of devices, unless it
/// has set a device or already uses one. @throws Error if there is no device
inline void choose_device(int index) {
  require_device("cuda::choose_device");
  if (!detail::device_is_chosen()) set_device(index % device_count());
}

/// An attribute of the current device, queried once per device and cached.
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

/// The number of multiprocessors of the current device.
inline int multiprocessors() { return device_attribute<cudaDevAttrMultiProcessorCount>(); }

}  // namespace cuda

}  // namespace cleave::inline v0
