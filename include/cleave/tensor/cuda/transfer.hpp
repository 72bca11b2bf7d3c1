// Copies between host and device for `Tensor::to`, through pinned staging buffers unless the host
// memory is pinned.
//
// In the order of the current stream; the host waits for completion, so that both sides may be
// changed or freed afterwards.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace cuda {

/// Pinned memory for reuse, because pinning is slow: blocks of one size, up to `max_free` of which
/// are kept while unused. One pool per process.
class PinnedPool {
 public:
  /// The size of a staging buffer: while the device copies one block, the host copies another.
  static constexpr std::size_t block_bytes = std::size_t(4) << 20;
  static constexpr std::size_t max_free = 16;

  static PinnedPool& get() {
    static PinnedPool& pool = *new PinnedPool;  // outlives the driver, which frees its memory
    return pool;
  }

  /// An uninitialised block; the last owner returns it to the pool. No pending work on a device may
  /// use it then.
  /// @throws Error if there is no device, or not enough memory
  std::shared_ptr<void> take() {
    std::shared_ptr<void> block = reuse();
    if (block == nullptr) block = allocate_pinned(block_bytes);
    void* const data = block.get();
    return {data, [this, block = std::move(block)](void*) { give_back(block); }};
  }

  /// Pins the blocks of one transfer in advance, when no transfer waits for them.
  void prepare() { const std::shared_ptr<void> blocks[] = {take(), take()}; }

 private:
  PinnedPool() { free_.reserve(max_free); }

  std::shared_ptr<void> reuse() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    std::shared_ptr<void> block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void give_back(const std::shared_ptr<void>& block) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < max_free) free_.push_back(block);
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> free_;
};

namespace detail {

/// Two alternating pinned buffers, each with an event for the end of its copy by the device.
class Staging {
 public:
  explicit Staging(std::size_t bytes) : count_(bytes > size() ? 2 : 1) {
    for (std::size_t i = 0; i < count_; ++i) buffers_[i] = PinnedPool::get().take();
  }
  Staging(const Staging&) = delete;  // the device may be using the buffers
  Staging& operator=(const Staging&) = delete;
  ~Staging() { static_cast<void>(cudaStreamSynchronize(current_stream().get())); }

  static constexpr std::size_t size() { return PinnedPool::block_bytes; }
  void* operator[](std::size_t part) const { return buffers_[part % count_].get(); }
  void mark(std::size_t part) const { done_[part % count_].record(current_stream()); }
  void await(std::size_t part) const { done_[part % count_].synchronize(); }
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  std::shared_ptr<void> buffers_[2];
  Event done_[2];
};

/// Whether the device can copy host memory directly: it is pinned, or registered by the user.
inline bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes{};
  const cudaError_t status = cudaPointerGetAttributes(&attributes, memory);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

/// Copies without staging and waits for completion.
inline void copy_directly(const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind,
                          const char* operation) {
  check(cudaMemcpyAsync(to, from, bytes, kind, current_stream().get()), operation);
  current_stream().synchronize();
}

}  // namespace detail

}  // namespace cuda

/// Copies contiguous bytes from the host to the current device.
/// @throws Error if the copy, or work enqueued before it, fails
inline void transfer(Host, Cuda, const void* from, void* to, std::size_t bytes,
                     const char* operation = "Tensor::to") {
  if (bytes == 0) return;
  if (cuda::detail::is_pinned(from))
    return cuda::detail::copy_directly(from, to, bytes, cudaMemcpyHostToDevice, operation);
  const cuda::detail::Staging staging(bytes);
  const auto* source = static_cast<const std::byte*>(from);
  auto* destination = static_cast<std::byte*>(to);
  for (std::size_t part = 0, at = 0; at < bytes; ++part, at += staging.size()) {
    const std::size_t count = bytes - at < staging.size() ? bytes - at : staging.size();
    if (part >= staging.count()) staging.await(part);
    std::memcpy(staging[part], source + at, count);
    cuda::check(cudaMemcpyAsync(destination + at, staging[part], count, cudaMemcpyHostToDevice,
                                cuda::current_stream().get()),
                operation);
    staging.mark(part);
  }
  cuda::current_stream().synchronize();
}

/// Copies contiguous bytes from the current device to the host.
/// @throws Error if the copy, or work enqueued before it, fails
inline void transfer(Cuda, Host, const void* from, void* to, std::size_t bytes,
                     const char* operation = "Tensor::to") {
  if (bytes == 0) return;
  if (cuda::detail::is_pinned(to))
    return cuda::detail::copy_directly(from, to, bytes, cudaMemcpyDeviceToHost, operation);
  const cuda::detail::Staging staging(bytes);
  const auto* source = static_cast<const std::byte*>(from);
  auto* destination = static_cast<std::byte*>(to);
  const std::size_t parts = (bytes + staging.size() - 1) / staging.size();
  const auto count = [&](std::size_t part) {
    return part + 1 < parts ? staging.size() : bytes - part * staging.size();
  };
  const auto start = [&](std::size_t part) {
    cuda::check(cudaMemcpyAsync(staging[part], source + part * staging.size(), count(part),
                                cudaMemcpyDeviceToHost, cuda::current_stream().get()),
                operation);
    staging.mark(part);
  };
  for (std::size_t part = 0; part < staging.count(); ++part) start(part);
  for (std::size_t part = 0; part < parts; ++part) {
    staging.await(part);
    std::memcpy(destination + part * staging.size(), staging[part], count(part));
    if (part + staging.count() < parts) start(part + staging.count());
  }
}

}  // namespace cleave::inline v0
