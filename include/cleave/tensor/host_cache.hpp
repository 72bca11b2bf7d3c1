// A cache of host memory, which a rank keeps for its next tensors.
//
// Fresh pages cost more than most kernels that use them: the system clears each page at its first
// touch. So blocks of 4 KiB and more are kept when their last tensor is destroyed, up to a limit
// (512 MiB per rank; CLEAVE_HOST_CACHE_MB in MiB, 0 keeps none), beyond which the oldest are freed.
// Sizes are rounded up to one of eight per power of two. Blocks of 4 MiB and more use huge pages
// where the system has them: a third of the time to clear, fewer TLB misses.
//
// Any thread may release a block; it returns to the cache that it came from. A cache ends with its
// rank: kept blocks are freed then, blocks in use by their last owner. Under AddressSanitizer, kept
// blocks are poisoned, and so is the padding of blocks in use.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cleave/core/config.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define CLEAVE_POISONS_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLEAVE_POISONS_MEMORY 1
#endif
#endif
#if defined(CLEAVE_POISONS_MEMORY)
#include <sanitizer/asan_interface.h>
#endif

namespace cleave::inline v0 {

/// Host memory of a rank's tensors, in bytes, and where it came from. Tensors of less than 4 KiB
/// are not counted.
struct MemoryStats {
  std::size_t allocated = 0;  ///< held by tensors
  std::size_t cached = 0;     ///< kept for future tensors
  std::size_t peak = 0;       ///< the highest value of `allocated`
  std::uint64_t fresh = 0;    ///< allocations that took new memory ..
  std::uint64_t reused = 0;   ///< .. and those that took kept memory
};

namespace detail {

/// Alignment of fresh storage: a cache line, and enough for any vector instruction.
inline constexpr std::size_t storage_alignment = 64;

/// Smaller blocks are allocated from and freed to the heap.
inline constexpr std::size_t least_cached_bytes = 4096;

#if defined(CLEAVE_POISONS_MEMORY)
inline void poison(const void* data, std::size_t bytes) {
  __asan_poison_memory_region(data, bytes);
}
inline void unpoison(const void* data, std::size_t bytes) {
  __asan_unpoison_memory_region(data, bytes);
}
#else
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif

/// The memory that one rank keeps; several threads may use it at once.
class HostCache {
 public:
  /// @param limit  the most bytes to keep
  explicit HostCache(std::size_t limit) : limit_(limit) {}
  HostCache(const HostCache&) = delete;  // owns the kept blocks
  HostCache& operator=(const HostCache&) = delete;
  ~HostCache() { release(); }

  /// The size of the block for a request of `bytes`: at most an eighth more.
  static constexpr std::size_t block_bytes(std::size_t bytes) noexcept {
    const std::size_t step = std::bit_floor(bytes) / sizes_per_doubling;
    return (bytes + step - 1) / step * step;
  }

  /// A block, aligned to `storage_alignment`; null if there is no memory.
  /// @pre bytes >= least_cached_bytes
  void* allocate(std::size_t bytes) noexcept;

  /// @param bytes  as passed to `allocate`
  void deallocate(void* data, std::size_t bytes) noexcept;

  /// Counts memory allocated elsewhere, and its release.
  void count(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    hold(bytes);
  }
  void discount(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.allocated -= bytes;
  }

  /// Frees all kept blocks.
  void release() noexcept;

  /// Frees all kept blocks, and keeps none from now on.
  void close() noexcept {
    {
      const std::lock_guard lock(mutex_);
      limit_ = 0;
    }
    release();
  }

  void reset_peak() noexcept {
    const std::lock_guard lock(mutex_);
    stats_.peak = stats_.allocated;
  }

  MemoryStats stats() const noexcept {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  static constexpr std::size_t sizes_per_doubling = 8;
  static constexpr int least_log = int(std::bit_width(least_cached_bytes)) - 1;
  static constexpr std::size_t max_bytes = std::size_t(1) << 62;
  static constexpr std::size_t huge_page = std::size_t(2) << 20;

  struct Kept {
    void* data;
    std::uint64_t since;
  };

  /// The index of the list of blocks of a size, and the inverse.
  static constexpr std::size_t place_of(std::size_t size) noexcept {
    const int log = int(std::bit_width(size)) - 1;
    const std::size_t step = (std::size_t(1) << log) / sizes_per_doubling;
    return std::size_t(log - least_log) * sizes_per_doubling + size / step - sizes_per_doubling;
  }
  static constexpr std::size_t size_at(std::size_t place) noexcept {
    const std::size_t least = least_cached_bytes << place / sizes_per_doubling;
    return least + place % sizes_per_doubling * (least / sizes_per_doubling);
  }

  static constexpr std::align_val_t alignment_of(std::size_t size) noexcept {
    return std::align_val_t(size >= 2 * huge_page ? huge_page : storage_alignment);
  }

  static void* from_heap(std::size_t size) noexcept {
    void* data = ::operator new(size, alignment_of(size), std::nothrow);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (data != nullptr && size >= 2 * huge_page)
      static_cast<void>(madvise(data, size / huge_page * huge_page, MADV_HUGEPAGE));
#endif
    return data;
  }
  static void to_heap(void* data, std::size_t size) noexcept {
    unpoison(data, size);
    ::operator delete(data, alignment_of(size));
  }

  /// @pre the lock is held, as for `free_oldest`
  void hold(std::size_t size) noexcept {
    stats_.allocated += size;
    if (stats_.allocated > stats_.peak) stats_.peak = stats_.allocated;
  }

  void free_oldest() noexcept;

  /// New memory; if there is none, frees all kept blocks and tries again.
  void* fresh(std::size_t size) noexcept;

  mutable std::mutex mutex_;
  std::size_t limit_;
  MemoryStats stats_;
  std::uint64_t clock_ = 0;
  std::array<std::vector<Kept>, std::size_t(63 - least_log) * sizes_per_doubling> kept_;
};

/// The limit of a cache that a variable of the environment sets in MiB, in bytes.
/// @throws Error for an invalid value
std::size_t requested_cache(const char* variable, std::size_t default_mib);

/// The cache of this thread's rank: the thread's, made at its first use, or the one that the thread
/// has joined; null at thread exit, when thread-local objects have been destroyed.
///
/// @param joined  the cache of the rank that this thread works for, to join; null: none
/// @throws Error for an invalid setting in the environment
std::shared_ptr<HostCache> host_cache(std::shared_ptr<HostCache> joined = nullptr);

}  // namespace detail

/// The host memory of this rank's tensors.
inline MemoryStats memory_stats() {
  const std::shared_ptr<detail::HostCache> cache = detail::host_cache();
  return cache == nullptr ? MemoryStats{} : cache->stats();
}

/// Resets `MemoryStats::peak` to the bytes that tensors hold now.
inline void reset_memory_peak() {
  if (const std::shared_ptr<detail::HostCache> cache = detail::host_cache()) cache->reset_peak();
}

/// Frees the memory that this rank keeps for its next tensors, not that of existing tensors. A rank
/// does this automatically when it ends.
inline void release_memory() {
  if (const std::shared_ptr<detail::HostCache> cache = detail::host_cache()) cache->release();
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/tensor/host_cache_body.hpp>
#endif
