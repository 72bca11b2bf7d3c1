// Memory that other processes of the node can read: a segment from which tensors are allocated.
//
// First fit among the free blocks; adjacent free blocks are merged on release. The lists of blocks
// are on the heap, not in the segment: releasing memory never touches it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// Allocates from one segment; used by all threads of a process.
class SharedArena final : public HostMemory {
 public:
  /// @param begin  of the segment, aligned to a cache line; must outlive the arena's blocks
  SharedArena(std::byte* begin, std::size_t bytes)
      : begin_(begin), bytes_(bytes / granule * granule), free_{{0, bytes_}} {}

  bool contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto from = reinterpret_cast<std::uintptr_t>(begin_);
    return at >= from && at < from + bytes_;
  }
  std::size_t offset_of(const void* address) const noexcept {
    return std::size_t(static_cast<const std::byte*>(address) - begin_);
  }

  void* allocate(std::size_t bytes) noexcept override {
    const std::size_t wanted = (bytes + granule - 1) / granule * granule;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      Block& block = free_[i];
      if (block.bytes < wanted) continue;
      const std::size_t offset = block.offset;
      try {
        used_.insert(place_of(used_, offset), {offset, wanted});
      } catch (...) {  // the heap is full
        return nullptr;
      }
      block.offset += wanted;
      block.bytes -= wanted;
      if (block.bytes == 0) free_.erase(free_.begin() + std::ptrdiff_t(i));
      return begin_ + offset;
    }
    return nullptr;
  }

  void release(void* address) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto entry = place_of(used_, offset_of(address));
    const Block block = *entry;
    used_.erase(entry);
    auto next = place_of(free_, block.offset);
    const bool joins_next = next != free_.end() && next->offset == block.offset + block.bytes;
    const bool joins_previous =
        next != free_.begin() && (next - 1)->offset + (next - 1)->bytes == block.offset;
    if (joins_previous) {
      (next - 1)->bytes += block.bytes + (joins_next ? next->bytes : 0);
      if (joins_next) free_.erase(next);
    } else if (joins_next) {
      next->offset = block.offset;
      next->bytes += block.bytes;
    } else {
      try {
        free_.insert(next, block);
      } catch (...) {  // the heap is full: the arena loses this block, and nothing else
      }
    }
  }

 private:
  static constexpr std::size_t granule = 64;

  struct Block {
    std::size_t offset, bytes;
  };
  using Blocks = std::vector<Block>;

  static Blocks::iterator place_of(Blocks& blocks, std::size_t offset) {
    return std::lower_bound(blocks.begin(), blocks.end(), offset,
                            [](const Block& block, std::size_t at) { return block.offset < at; });
  }

  std::byte* begin_;
  std::size_t bytes_;
  std::mutex mutex_;
  Blocks free_;  ///< ascending, never adjacent
  Blocks used_;  ///< ascending
};

}  // namespace cleave::inline v0::detail
