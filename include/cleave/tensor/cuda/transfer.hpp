// Copies between host and device, through pinned memory: what `Tensor::to` does.
//
// In order with what the current stream has so far; the host waits for the end, so that neither
// side has to be kept alive or unchanged afterwards.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave {

namespace cuda {

/// Pinned memory that is used again, because pinning is slow. One pool per process.
class PinnedPool {
 public:
  static PinnedPool& get() {
    static PinnedPool& pool = *new PinnedPool;  // outlives the driver, which frees the memory
    return pool;
  }

  /// At least `bytes`, uninitialised; the last owner returns it to the pool, which nothing that
  /// still runs on a device may use then.
  /// @throws Error if there is no device, or not enough memory
  std::shared_ptr<void> take(std::size_t bytes) {
    std::size_t size = least;
    while (size < bytes) size *= 2;
    std::shared_ptr<void> block = reuse(size);
    if (block == nullptr) block = allocate_pinned(size);
    void* data = block.get();
    return {data, [this, size, block](void*) {
              const std::lock_guard lock(mutex_);
              free_.emplace_back(size, block);
            }};
  }

 private:
  static constexpr std::size_t least = 4096;

  PinnedPool() = default;

  std::shared_ptr<void> reuse(std::size_t size) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (free_[i].first != size) continue;
      std::swap(free_[i], free_.back());
      std::shared_ptr<void> block = std::move(free_.back().second);
      free_.pop_back();
      return block;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<std::pair<std::size_t, std::shared_ptr<void>>> free_;
};

namespace detail {

/// Bytes that are staged at a time: while the device copies one part, the host copies another.
inline constexpr std::size_t staged_bytes = std::size_t(4) << 20;

/// Two pinned buffers that take turns, each with the point at which the device is done with it.
class Staging {
 public:
  explicit Staging(std::size_t bytes)
      : size_(bytes < staged_bytes ? bytes : staged_bytes), count_(bytes > size_ ? 2 : 1) {
    for (std::size_t i = 0; i < count_; ++i) buffers_[i] = PinnedPool::get().take(size_);
  }
  Staging(const Staging&) = delete;  // the device may be at work on it
  Staging& operator=(const Staging&) = delete;
  ~Staging() { static_cast<void>(cudaStreamSynchronize(current_stream().get())); }

  std::size_t size() const { return size_; }
  void* operator[](std::size_t part) const { return buffers_[part % count_].get(); }
  void mark(std::size_t part) const { done_[part % count_].record(current_stream()); }
  void await(std::size_t part) const { done_[part % count_].synchronize(); }
  std::size_t count() const { return count_; }

 private:
  std::size_t size_;
  std::size_t count_;
  std::shared_ptr<void> buffers_[2];
  Event done_[2];
};

}  // namespace detail

}  // namespace cuda

/// Copies dense bytes from the host to the current device.
/// @throws Error if the copy, or something enqueued before it, fails
inline void transfer(Host, Cuda, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  const cuda::detail::Staging staging(bytes);
  const auto* source = static_cast<const std::byte*>(from);
  auto* destination = static_cast<std::byte*>(to);
  for (std::size_t part = 0, at = 0; at < bytes; ++part, at += staging.size()) {
    const std::size_t count = bytes - at < staging.size() ? bytes - at : staging.size();
    if (part >= staging.count()) staging.await(part);
    std::memcpy(staging[part], source + at, count);
    cuda::check(cudaMemcpyAsync(destination + at, staging[part], count, cudaMemcpyHostToDevice,
                                cuda::current_stream().get()),
                "Tensor::to");
    staging.mark(part);
  }
  cuda::current_stream().synchronize();
}

/// Copies dense bytes from the current device to the host.
/// @throws Error if the copy, or something enqueued before it, fails
inline void transfer(Cuda, Host, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
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
                "Tensor::to");
    staging.mark(part);
  };
  for (std::size_t part = 0; part < staging.count(); ++part) start(part);
  for (std::size_t part = 0; part < parts; ++part) {
    staging.await(part);
    std::memcpy(destination + part * staging.size(), staging[part], count(part));
    if (part + staging.count() < parts) start(part + staging.count());
  }
}

}  // namespace cleave
