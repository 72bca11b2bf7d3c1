// One kind of memory of one device: a reserved range of addresses from which blocks are allocated.
//
// The range is readable and writable only while it is exposed, that is, while the machine runs
// operations. Fresh and dead blocks are filled with poison. A dead block rests in quarantine; its
// poison is checked when it leaves. The guard bytes behind a block are checked when the block dies.
//
// Addresses are plentiful, memory is not: an arena takes memory of the device for its blocks. A
// pool keeps that of dead blocks until it is trimmed, and uses it again only for blocks that fit
// into a gap (CUDA Programming Guide 13.0, 4.3.4.2 "Physical Page Caching Behavior";
// cuda_runtime_api.h 13.0, cudaMemPoolTrimTo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace cuda_stand_in {

/// The result of one allocation.
struct Block {
  std::size_t size = 0;      ///< bytes asked for
  std::size_t reserved = 0;  ///< bytes taken, including the guard behind the block
  bool usable = false;       ///< by operations: allocated and not yet freed, in stream order
  bool freed = false;        ///< by the host, perhaps not yet in stream order
  bool guarded = false;      ///< the poison behind the block has been written
  bool of_graph = false;     ///< becomes usable with every launch of a graph
  bool held = true;          ///< has memory of the device
};

class Arena {
 public:
  /// @param kind  0: cudaMalloc; otherwise the number of a pool of the device
  Arena(std::size_t addresses, int device, int kind);
  Arena(const Arena&) = delete;  // blocks are addresses within the range, which is never unmapped

  int device() const { return device_; }
  int kind() const { return kind_; }
  /// Whether blocks are allocated and freed in stream order.
  bool pool() const { return kind_ != 0; }
  bool contains(const void* address) const;

  void expose();
  void hide();

  /// Allocates a block that is not usable yet. @return null if there is no room
  /// @param available  bytes of the device that no arena holds
  void* allocate(std::size_t size, std::size_t available);
  /// Gives back the memory that no live block holds, but only if the host has waited since the last
  /// block died.
  void trim();
  /// The host has waited for all work that has run.
  void observe() { observed_ = true; }
  /// Makes the block usable and fills it with poison. The arena is exposed.
  void begin(void* address);
  /// Makes the block unusable until it begins again. The arena is exposed.
  void suspend(void* address);
  /// Ends the block's life. The arena is exposed.
  /// @return an error message if the guard behind the block was overwritten; empty otherwise
  std::string end(void* address);
  /// Recycles dead blocks until at most `bytes` remain in quarantine. The arena is exposed.
  /// @return an error message if their memory was written to; empty otherwise
  std::string recycle(std::size_t bytes);

  /// Checks the guards of live blocks and the whole quarantine. The arena is exposed.
  /// @return an error message; empty if all is well or nothing has changed since the last check
  std::string inspect();

  /// The block that holds [address, address + size) and has not been recycled; null if none does.
  Block* find(const void* address, std::size_t size);
  /// The block that starts at the address; null if none does.
  Block* starting_at(const void* address);

  /// Bytes of live blocks.
  std::size_t in_use() const { return in_use_; }
  /// Bytes of the device that the arena holds.
  std::size_t held() const { return held_; }

 private:
  using Gaps = std::map<std::size_t, std::size_t>;  ///< offset to bytes

  std::size_t offset_of(const void* address) const;
  static void add_gap(Gaps& gaps, std::size_t offset, std::size_t bytes);
  static std::ptrdiff_t take_gap(Gaps& gaps, std::size_t bytes);
  std::string inspect_guard(std::size_t offset, const Block& block);
  std::string inspect_dead(std::size_t offset, const Block& block);

  std::byte* base_ = nullptr;
  std::size_t addresses_;
  std::size_t touched_ = 0;  ///< bytes beyond this have never been exposed
  std::size_t exposed_ = 0;
  int device_;
  int kind_;
  std::map<std::size_t, Block> blocks_;  ///< by offset; live and in quarantine
  Gaps idle_;                            ///< free space with memory, of a pool
  Gaps holes_;                           ///< free space without
  std::deque<std::size_t> quarantine_;
  std::size_t in_use_ = 0;
  std::size_t held_ = 0;
  bool observed_ = true;
  std::size_t resting_ = 0;
};

}  // namespace cuda_stand_in
