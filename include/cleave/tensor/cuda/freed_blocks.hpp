// Device memory of destroyed tensors that a stream keeps for its next tensors.
//
// A step of a program allocates the same sizes over and over. A block that was used on a stream is
// used again for an allocation of as many bytes on that stream, without a call of the runtime: work
// of a stream runs in order, so the last use of the old tensor precedes the first of the new one.
// Any thread may release a block, or use it again.
//
// Blocks are freed when the stream ends, when there would be too many, and when memory is needed
// elsewhere (`release_idle`). A capture takes none: the memory that it allocates is its graph's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0::cuda::detail {

/// Frees memory in stream order. Errors are reported by the next use of the device.
inline void free_in_order(void* data, cudaStream_t stream) noexcept {
  if (cudaFreeAsync(data, stream) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

/// The blocks that a stream keeps.
class FreedBlocks {
 public:
  /// Larger blocks are freed: work that uses them takes longer than the calls.
  static constexpr std::size_t most_bytes_per_block = std::size_t(4) << 20;
  /// Of all blocks, unless CLEAVE_CUDA_CACHE_MB says otherwise.
  static constexpr std::size_t default_mib = 64;
  /// Different sizes, which are searched one by one.
  static constexpr std::size_t most_sizes = 64;

  /// For a stream of the current device.
  /// @throws Error if CLEAVE_CUDA_CACHE_MB is not a number
  explicit FreedBlocks(cudaStream_t stream)
      : stream_(stream),
        device_(current_device()),
        most_bytes_(cleave::detail::requested_cache("CLEAVE_CUDA_CACHE_MB", default_mib)) {
    All& all = All::get();
    const std::lock_guard lock(all.mutex);
    all.list.push_back(this);
  }
  FreedBlocks(const FreedBlocks&) = delete;  // others know its address
  FreedBlocks& operator=(const FreedBlocks&) = delete;
  ~FreedBlocks() {
    All& all = All::get();
    const std::lock_guard lock(all.mutex);
    std::erase(all.list, this);
    free_all();
  }

  /// A block of so many bytes; null if there is none. @pre the stream is not captured
  void* take(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    for (Size& size : sizes_)
      if (size.bytes == bytes && !size.blocks.empty()) {
        void* const block = size.blocks.back();
        size.blocks.pop_back();
        bytes_ -= bytes;
        return block;
      }
    return nullptr;
  }

  /// Keeps a block that was not allocated in a capture. @return false if the caller must free it
  bool keep(void* block, std::size_t bytes) noexcept {
    if (bytes > std::min(most_bytes_per_block, most_bytes_)) return false;
    const std::lock_guard lock(mutex_);
    auto size = std::find_if(sizes_.begin(), sizes_.end(),
                             [&](const Size& one) { return one.bytes == bytes; });
    if (bytes_ + bytes > most_bytes_ || (size == sizes_.end() && sizes_.size() == most_sizes)) {
      if (capture_at(stream_).status != cudaStreamCaptureStatusNone) return false;
      free_all();
      size = sizes_.end();
    }
    try {
      if (size == sizes_.end()) size = sizes_.insert(size, Size{bytes, {}});
      size->blocks.push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    bytes_ += bytes;
    return true;
  }

  /// Blocks that no stream keeps any more: the owner frees them when the work of their streams that
  /// was enqueued before has ended, on any stream.
  using Taken = std::vector<void*>;

  /// Moves the blocks of this stream to `taken`.
  void take_all(Taken& taken) {
    const std::lock_guard lock(mutex_);
    std::size_t count = taken.size();
    for (const Size& size : sizes_) count += size.blocks.size();
    taken.reserve(count);
    for (const Size& size : sizes_)
      taken.insert(taken.end(), size.blocks.begin(), size.blocks.end());
    sizes_.clear();
    bytes_ = 0;
  }
  /// Moves the blocks of all streams of a device to `taken`.
  static void take_all_of_device(int device, Taken& taken) {
    All& all = All::get();
    const std::lock_guard lock(all.mutex);
    for (FreedBlocks* const blocks : all.list)
      if (blocks->device_ == device) blocks->take_all(taken);
  }

 private:
  struct Size {
    std::size_t bytes;
    std::vector<void*> blocks;
  };
  /// Of all streams. Never destroyed: streams of threads end later.
  struct All {
    static All& get() {
      static All& all = *new All;
      return all;
    }
    std::mutex mutex{};
    std::vector<FreedBlocks*> list{};
  };

  void free_all() noexcept {
    for (const Size& size : sizes_)
      for (void* const block : size.blocks) free_in_order(block, stream_);
    sizes_.clear();
    bytes_ = 0;
  }

  cudaStream_t stream_;
  int device_;
  std::size_t most_bytes_, bytes_ = 0;
  std::vector<Size> sizes_{};
  std::mutex mutex_{};
};

}  // namespace cleave::inline v0::cuda::detail
