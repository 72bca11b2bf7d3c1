// One kind of memory of one device: a reserved range of addresses from which blocks are allocated.
//
// The range is readable and writable only while it is exposed, that is, while the machine runs
// operations, which check that the blocks that they access are usable. Fresh blocks are filled with
// poison. A dead block rests in quarantine, so that its addresses remain unusable for a while.
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
  bool exposed() const { return exposed_ > 0; }

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
  /// Ends the block's life.
  void end(void* address);
  /// Recycles dead blocks until at most `bytes` remain in quarantine.
  void recycle(std::size_t bytes);

  /// The block that holds [address, address + size) and has not been recycled; null if none does.
  Block* find(const void* address, std::size_t size);
  /// Where the block that holds the address begins.
  const std::byte* begin_of(const void* address) const;
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
