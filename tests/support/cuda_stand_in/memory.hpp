// All memory that the machine knows: allocations on devices, and pinned memory of the host.
//
// Allocations have addresses of one reserved range, and none is used twice, so that an access after
// a release is always found. The range is accessible only while it is exposed, that is, while the
// machine runs operations, which check that they may use what they touch. Fresh allocations are
// filled with poison.
//
// Addresses are plentiful, memory is not. A pool keeps that of released allocations until it is
// trimmed, and uses it again only for allocations that fit into one of the pieces (CUDA Programming
// Guide 13.0, 4.3.4.2 "Physical Page Caching Behavior"; cuda_runtime_api.h 13.0,
// cudaMemPoolTrimTo).
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <cuda_runtime_api.h>

#include "settings.hpp"

namespace cuda_stand_in {

struct Device;

}  // namespace cuda_stand_in

/// A memory pool of a device, or what cudaMalloc allocates there.
struct CUmemPoolHandle_st {
  cuda_stand_in::Device* device = nullptr;
  bool in_stream_order = true;  ///< false for cudaMalloc, which keeps nothing
  std::uint64_t threshold = 0;  ///< bytes that it keeps when the host waits: 0, or all
  std::bitset<cuda_stand_in::max_devices>
      readers{};  ///< other devices whose kernels may touch its memory
};

namespace cuda_stand_in {

/// Fills the range with bytes that no computation should read; very large ranges only at both ends.
void poison(void* begin, std::size_t bytes);

/// An allocation on a device, or pinned memory.
struct Block {
  std::size_t size = 0;                ///< bytes asked for
  CUmemPoolHandle_st* pool = nullptr;  ///< null for pinned memory
  std::size_t held = 0;                ///< bytes taken from the device
  bool usable = false;      ///< by operations: allocated and not yet freed, in stream order
  bool freed = false;       ///< by the host, perhaps not yet in stream order
  bool of_graph = false;    ///< becomes usable with every launch of a graph
  bool registered = false;  ///< pinned by cudaHostRegister, not by cudaHostAlloc
};

/// The memory at a range of addresses.
struct Place {
  bool on_device = false;
  std::byte* begin = nullptr;  ///< of the block
  Block* block = nullptr;      ///< which holds the first address; null for pageable memory
  bool within = true;          ///< whether the block holds the whole range

  bool pageable() const { return !on_device && block == nullptr; }
  /// Whether one allocation that the host has not freed holds the range, as far as known.
  bool whole() const { return block == nullptr ? !on_device : within && !block->freed; }
  /// The number of the device; -1 if it is not known.
  int device() const;
};

class Memory {
 public:
  explicit Memory(std::size_t bytes_per_device);

  /// Allocates a block that is not usable yet. @return null if there is no room
  void* allocate(CUmemPoolHandle_st& pool, std::size_t bytes);
  /// Makes a block usable and fills it with poison. Memory is exposed.
  void begin(void* address);
  /// Makes a block unusable and, unless it is of a graph, releases it.
  void end(void* address);
  void release(void* address);
  /// Gives back what the pool keeps, but only if the host has waited since it was released.
  void trim(const CUmemPoolHandle_st& pool);
  /// The host has waited for work of the device: all that has run is known to it.
  void observe(Device& device);

  void add_pinned(void* begin, std::size_t bytes, bool registered);
  /// @return the bytes that were pinned in this way from the address on; 0 if none were
  std::size_t remove_pinned(void* begin, bool registered);

  Place place(const void* address, std::size_t bytes);
  /// The block that starts at the address and that the host has not freed; null if there is none.
  Block* live(void* address);
  /// Bytes of a pool that are allocated.
  std::size_t used(const CUmemPoolHandle_st& pool) const;
  /// Bytes of the device that are neither allocated nor kept by a pool.
  std::size_t available(const Device& device) const;

  void expose();
  void hide();

  std::size_t bytes_per_device;

 private:
  /// What a pool keeps of one released block.
  struct Piece {
    CUmemPoolHandle_st* pool;
    std::size_t bytes;
    bool awaited = false;  ///< the host has waited since the release
  };

  std::byte* range_;
  std::size_t top_ = 0;      ///< bytes of the range that were used
  std::size_t exposed_ = 0;  ///< bytes of the range that are accessible
  std::map<const std::byte*, Block> blocks_;
  std::vector<Piece> kept_;
};

}  // namespace cuda_stand_in
