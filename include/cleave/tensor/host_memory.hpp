// Sources of host tensor memory other than the heap; among them one for dry runs, which reserves
// addresses but no memory until a page is written.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cleave::inline v0::detail {

/// A source of host tensor memory that replaces the heap, e.g. memory shared with other processes.
/// Blocks are aligned to a cache line.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// Null if there is no room; the heap is used then.
  virtual void* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(void* address) noexcept = 0;
};

/// The process's source of tensor memory; null: the heap alone.
inline std::shared_ptr<HostMemory>& host_memory() {
  static std::shared_ptr<HostMemory> memory;
  return memory;
}

/// Whether this thread is in a dry run: elements have no meaning and are not computed.
inline bool& is_dry() noexcept {
  static thread_local bool dry = false;
  return dry;
}

/// Puts this thread into a dry run for the lifetime of the object.
class DryScope {
 public:
  DryScope() : before_(std::exchange(is_dry(), true)) {}
  DryScope(const DryScope&) = delete;  // ends the dry run once
  DryScope& operator=(const DryScope&) = delete;
  ~DryScope() { is_dry() = before_; }

 private:
  bool before_;
};

#if defined(__linux__)
/// Address space without memory. Reads return zeros; the first write to a page allocates it.
class DryMemory final : public HostMemory {
 public:
  static const std::shared_ptr<HostMemory>& instance() {
    static const std::shared_ptr<HostMemory> memory(new DryMemory);
    return memory;
  }

  void* allocate(std::size_t bytes) noexcept override {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    try {
      const std::lock_guard lock(mutex_);
      blocks_.push_back({data, bytes});
    } catch (...) {
      munmap(data, bytes);
      return nullptr;
    }
    return data;
  }
  void release(void* address) noexcept override {
    const std::lock_guard lock(mutex_);
    std::size_t i = blocks_.size() - 1;  // mostly the newest blocks are released first
    while (blocks_[i].address != address) --i;
    munmap(address, blocks_[i].bytes);
    blocks_[i] = blocks_.back();
    blocks_.pop_back();
  }

 private:
  struct Block {
    void* address;
    std::size_t bytes;
  };

  std::mutex mutex_;
  std::vector<Block> blocks_;
};

/// The source of memory of this thread's tensors; null: the heap alone.
inline std::shared_ptr<HostMemory> memory_source() {
  return is_dry() ? DryMemory::instance() : host_memory();
}
#else
inline std::shared_ptr<HostMemory> memory_source() { return host_memory(); }
#endif

}  // namespace cleave::inline v0::detail
