// Memory of the host that a rank has used and keeps for its next tensors.
//
// Fresh pages cost more than most kernels do with them: the system clears each at its first touch.
// So blocks of 4 KiB and more are kept when their last tensor is gone, up to a bound (512 MiB per
// rank, CLEAVE_HOST_CACHE_MB in MiB, 0 keeps none), and the oldest are given back beyond it. Sizes
// are rounded up to one of eight per power of two. Blocks of 4 MiB and more lie on huge pages where
// the system has them: a third of the time to clear, fewer misses of the address cache.
//
// A block may be given back by any thread; it returns to the cache that it came from. A cache ends
// with its rank: what is kept is freed then, what is still in use is freed by its last owner. Under
// AddressSanitizer kept blocks are poisoned, and so is what rounding added to a block in use.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cleave/core/error.hpp>

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

namespace cleave {

/// Host memory of a rank's tensors, in bytes, and where it came from. Tensors of less than 4 KiB
/// are not counted.
struct MemoryStats {
  std::size_t allocated = 0;  ///< held by tensors
  std::size_t cached = 0;     ///< kept for tensors to come
  std::size_t peak = 0;       ///< the most that was held at once
  std::uint64_t fresh = 0;    ///< allocations that took new memory ..
  std::uint64_t reused = 0;   ///< .. and those that took kept memory
};

namespace detail {

/// Alignment of fresh storage: a cache line, and enough for any vector instruction.
inline constexpr std::size_t storage_alignment = 64;

/// Smaller blocks come from the heap and go there.
inline constexpr std::size_t least_cached_bytes = 4096;

#if defined(CLEAVE_POISONS_MEMORY)
inline void poison(const void* data, std::size_t bytes) { __asan_poison_memory_region(data, bytes); }
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
  /// @param limit  bytes that are kept at most
  explicit HostCache(std::size_t limit) : limit_(limit) {}
  HostCache(const HostCache&) = delete;  // owns what it keeps
  HostCache& operator=(const HostCache&) = delete;
  ~HostCache() { release(); }

  /// The size of the block that serves for `bytes`: at most an eighth more.
  static constexpr std::size_t block_bytes(std::size_t bytes) noexcept {
    const std::size_t step = std::bit_floor(bytes) / sizes_per_doubling;
    return (bytes + step - 1) / step * step;
  }

  /// A block, aligned to `storage_alignment`; null if there is no memory.
  /// @pre bytes >= least_cached_bytes
  void* allocate(std::size_t bytes) noexcept {
    if (bytes > max_bytes) return nullptr;
    const std::size_t size = block_bytes(bytes);
    void* data = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::vector<Kept>& blocks = kept_[place_of(size)];
      if (!blocks.empty()) {
        data = blocks.back().data;
        blocks.pop_back();
        stats_.cached -= size;
        ++stats_.reused;
        hold(size);
      }
    }
    if (data == nullptr) data = fresh(size);
    if (data == nullptr) return nullptr;
    unpoison(data, bytes);
    poison(static_cast<std::byte*>(data) + bytes, size - bytes);
    return data;
  }

  /// @param bytes  as they were asked for
  void deallocate(void* data, std::size_t bytes) noexcept {
    const std::size_t size = block_bytes(bytes);
    {
      const std::lock_guard lock(mutex_);
      stats_.allocated -= size;
      if (size <= limit_) {
        try {
          kept_[place_of(size)].push_back({data, ++clock_});
          poison(data, size);
          stats_.cached += size;
          data = nullptr;
        } catch (...) {  // there is no memory for the list: the block itself makes some
        }
      }
      while (stats_.cached > limit_) free_oldest();
    }
    if (data != nullptr) to_heap(data, size);
  }

  /// Counts memory that comes from elsewhere, and that it has gone.
  void count(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    hold(bytes);
  }
  void discount(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    stats_.allocated -= bytes;
  }

  /// Frees what is kept.
  void release() noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      for (const Kept& block : kept_[i]) to_heap(block.data, size_at(i));
      kept_[i].clear();
    }
    stats_.cached = 0;
  }

  /// Frees what is kept, and keeps nothing from now on.
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

  /// Where blocks of that size are kept, and back.
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

  /// @pre the lock is held, as for all that follow
  void hold(std::size_t size) noexcept {
    stats_.allocated += size;
    if (stats_.allocated > stats_.peak) stats_.peak = stats_.allocated;
  }

  void free_oldest() noexcept {
    std::size_t oldest = kept_.size();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (!kept_[i].empty() &&
          (oldest == kept_.size() || kept_[i].front().since < kept_[oldest].front().since))
        oldest = i;
    to_heap(kept_[oldest].front().data, size_at(oldest));
    kept_[oldest].erase(kept_[oldest].begin());
    stats_.cached -= size_at(oldest);
  }

  /// New memory; what is kept makes room for it.
  void* fresh(std::size_t size) noexcept {
    void* data = from_heap(size);
    if (data == nullptr) {
      release();
      data = from_heap(size);
    }
    if (data == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    ++stats_.fresh;
    hold(size);
    return data;
  }

  mutable std::mutex mutex_;
  std::size_t limit_;
  MemoryStats stats_;
  std::uint64_t clock_ = 0;
  std::array<std::vector<Kept>, std::size_t(63 - least_log) * sizes_per_doubling> kept_;
};

/// What CLEAVE_HOST_CACHE_MB asks for, in bytes.
/// @throws Error for a value that means nothing
inline std::size_t requested_host_cache() {
  constexpr double mebibyte = 1 << 20, most = double(std::size_t(1) << 40);
  const char* text = std::getenv("CLEAVE_HOST_CACHE_MB");
  if (text == nullptr || *text == '\0') return std::size_t(512) << 20;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !(value >= 0))
    throw Error("run", std::string("CLEAVE_HOST_CACHE_MB is '") + text + "'; use MiB >= 0");
  return std::size_t((value < most ? value : most) * mebibyte);
}

/// The cache of this thread's rank: one of its own, made at the first use, or the one that it has
/// joined; null while the thread ends, when its objects are gone.
///
/// @param joined  of the rank that this thread works for
/// @throws Error for a bad setting in the environment
inline std::shared_ptr<HostCache> host_cache(std::shared_ptr<HostCache> joined = nullptr) {
  thread_local bool has_ended = false;  // may be read until the very end
  if (has_ended) return nullptr;
  struct Place {
    std::shared_ptr<HostCache> cache{};
    bool is_own = true;
    ~Place() {
      if (is_own && cache != nullptr) cache->close();
      has_ended = true;
    }
  };
  thread_local Place place;
  if (joined != nullptr) {
    place.cache = std::move(joined);
    place.is_own = false;
  }
  if (place.cache == nullptr) place.cache.reset(new HostCache(requested_host_cache()));
  return place.cache;
}

}  // namespace detail

/// The memory of this rank's tensors on the host.
inline MemoryStats memory_stats() {
  const std::shared_ptr<detail::HostCache> cache = detail::host_cache();
  return cache == nullptr ? MemoryStats{} : cache->stats();
}

/// Lets `MemoryStats::peak` begin again, at what tensors hold now.
inline void reset_memory_peak() {
  if (const std::shared_ptr<detail::HostCache> cache = detail::host_cache()) cache->reset_peak();
}

/// Gives the memory back to the system that this rank keeps for its next tensors; what tensors
/// hold stays. A rank that ends does this by itself.
inline void release_memory() {
  if (const std::shared_ptr<detail::HostCache> cache = detail::host_cache()) cache->release();
}

}  // namespace cleave
