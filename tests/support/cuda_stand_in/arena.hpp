// One kind of memory of one device: a reserved range of addresses from which blocks are taken.
//
// The range can be read and written only while it is exposed, which it is while the machine runs
// operations. Fresh and dead blocks are full of poison; a dead block rests in quarantine, and when
// it leaves, the poison is looked at, as are the bytes behind every block when it dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace cuda_stand_in {

/// What one call for memory returned.
struct Block {
  std::size_t size = 0;      ///< bytes asked for
  std::size_t reserved = 0;  ///< bytes taken, with the guard behind
  bool usable = false;       ///< for operations: allocated, and not yet freed, in stream order
  bool freed = false;        ///< for the host: given back, perhaps not yet in stream order
  bool guarded = false;      ///< the poison behind it has been laid
  bool of_graph = false;     ///< comes to life with every launch of a graph
};

class Arena {
 public:
  Arena(std::size_t capacity, int device, bool pool);
  Arena(const Arena&) = delete;  // blocks are addresses within the range, which is kept for good

  int device() const { return device_; }
  /// Whether blocks come and go in stream order.
  bool pool() const { return pool_; }
  bool contains(const void* address) const;

  void expose();
  void hide();

  /// A block that is not usable yet; null if there is no room.
  void* allocate(std::size_t size);
  /// Makes the block usable and fills it with poison. The arena is exposed.
  void begin(void* address);
  /// Makes the block unusable until it begins again. The arena is exposed.
  void suspend(void* address);
  /// Ends the block's life. The arena is exposed.
  /// @return what is wrong with the memory behind the block; empty if nothing
  std::string end(void* address);
  /// Lets dead blocks go until at most `bytes` remain in quarantine. The arena is exposed.
  /// @return what is wrong with their memory; empty if nothing
  std::string recycle(std::size_t bytes);

  /// Looks at the guards of live blocks and at the whole quarantine. The arena is exposed.
  /// @return what is wrong; empty if nothing, and when nothing has changed since the last look
  std::string inspect();

  /// The block that holds [address, address + size) and has not been recycled; null if none does.
  Block* find(const void* address, std::size_t size);
  /// The block that starts at the address; null if none does.
  Block* starting_at(const void* address);

  std::size_t capacity() const { return capacity_; }
  std::size_t in_use() const { return in_use_; }

 private:
  std::size_t offset_of(const void* address) const;
  std::string inspect_guard(std::size_t offset, const Block& block);
  std::string inspect_dead(std::size_t offset, const Block& block);

  std::byte* base_ = nullptr;
  std::size_t capacity_;
  std::size_t touched_ = 0;  ///< what lies beyond has never been exposed
  std::size_t exposed_ = 0;
  int device_;
  bool pool_;
  std::map<std::size_t, Block> blocks_;       ///< by offset; live and in quarantine
  std::map<std::size_t, std::size_t> holes_;  ///< free space: offset to bytes
  std::deque<std::size_t> quarantine_;
  std::size_t in_use_ = 0;
  std::size_t resting_ = 0;
};

}  // namespace cuda_stand_in
