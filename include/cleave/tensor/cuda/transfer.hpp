// Copies between host and device, through pinned memory or from and to it: what `Tensor::to` does.
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

/// Pinned memory that is used again, because pinning is slow: as much as `max_free` of what is
/// free. One pool per process.
class PinnedPool {
 public:
  static constexpr std::size_t max_free = std::size_t(256) << 20;

  static PinnedPool& get() {
    static PinnedPool& pool = *new PinnedPool;  // outlives the driver, which frees the memory
    return pool;
  }

  /// At least `bytes`, uninitialised; the last owner returns it to the pool, which nothing that
  /// still runs on a device may use then.
  /// @throws Error if there is no device, or not enough memory
  std::shared_ptr<void> take(std::size_t bytes) {
    Block block = reuse(bytes);
    if (block.memory == nullptr) {
      block.size = (bytes + granule - 1) / granule * granule;
      block.memory = allocate_pinned(block.size);
    }
    void* data = block.memory.get();
    return {data, [this, block](void*) { give_back(block); }};
  }

  /// Bytes that wait to be used again.
  std::size_t free_bytes() {
    const std::lock_guard lock(mutex_);
    return free_bytes_;
  }

 private:
  static constexpr std::size_t granule = 4096;

  struct Block {
    std::shared_ptr<void> memory{};
    std::size_t size = 0;
  };

  PinnedPool() = default;

  /// The smallest free block that is large enough, and less than half of which would be left over.
  Block reuse(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block)
      if (block->size >= bytes && block->size < 2 * bytes + granule &&
          (best == free_.end() || block->size < best->size))
        best = block;
    if (best == free_.end()) return {};
    Block found = std::move(*best);
    free_.erase(best);
    free_bytes_ -= found.size;
    return found;
  }

  /// What has been free for longest goes if there is too much.
  void give_back(const Block& block) {
    std::vector<Block> excess;  // unpinned without the lock
    const std::lock_guard lock(mutex_);
    free_.push_back(block);
    free_bytes_ += block.size;
    while (free_bytes_ > max_free) {
      free_bytes_ -= free_.front().size;
      excess.push_back(std::move(free_.front()));
      free_.erase(free_.begin());
    }
  }

  std::mutex mutex_;
  std::vector<Block> free_;  ///< longest first
  std::size_t free_bytes_ = 0;
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

/// Whether the device copies host memory directly: pinned, or registered by the user.
inline bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes{};
  const cudaError_t status = cudaPointerGetAttributes(&attributes, memory);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

/// A copy without staging, which the host waits for.
inline void copy_directly(const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, current_stream().get()), "Tensor::to");
  current_stream().synchronize();
}

}  // namespace detail

}  // namespace cuda

/// Copies dense bytes from the host to the current device.
/// @throws Error if the copy, or something enqueued before it, fails
inline void transfer(Host, Cuda, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (cuda::detail::is_pinned(from))
    return cuda::detail::copy_directly(from, to, bytes, cudaMemcpyHostToDevice);
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
  if (cuda::detail::is_pinned(to))
    return cuda::detail::copy_directly(from, to, bytes, cudaMemcpyDeviceToHost);
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
