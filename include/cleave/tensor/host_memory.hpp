// Sources of memory for host tensors other than the heap; among them one for dry runs, whose memory
// has addresses but takes no room until somebody writes to it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cleave::detail {

/// Where host tensors get their memory from instead of the heap, e.g. memory that is shared with
/// other processes. Blocks are aligned to a cache line.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  /// Null if there is no room; the heap serves then.
  virtual void* allocate(std::size_t bytes) noexcept = 0;
  virtual void release(void* address) noexcept = 0;
};

/// The process' source of memory for tensors; null: the heap alone.
inline std::shared_ptr<HostMemory>& host_memory() {
  static std::shared_ptr<HostMemory> memory;
  return memory;
}

/// Whether this thread makes a dry run: elements mean nothing, and nothing computes them.
inline bool& is_dry() noexcept {
  static thread_local bool dry = false;
  return dry;
}

/// While it lives, this thread makes a dry run.
class DryScope {
 public:
  DryScope() : before_(std::exchange(is_dry(), true)) {}
  DryScope(const DryScope&) = delete;  // one scope
  DryScope& operator=(const DryScope&) = delete;
  ~DryScope() { is_dry() = before_; }

 private:
  bool before_;
};

#if defined(__linux__)
/// Addresses that are backed by nothing. What reads them sees zeros, what writes them takes a page.
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
    std::size_t i = blocks_.size() - 1;  // the last ones go first, mostly
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

/// Where this thread's tensors get their memory from; null: the heap alone.
inline std::shared_ptr<HostMemory> memory_source() {
  return is_dry() ? DryMemory::instance() : host_memory();
}
#else
inline std::shared_ptr<HostMemory> memory_source() { return host_memory(); }
#endif

}  // namespace cleave::detail
