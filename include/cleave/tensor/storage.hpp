// Memory that tensors share: who owns it, where it is, how it is given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>

namespace cleave {

/// Memory of the process that the CPU reads and writes.
struct Host {
  static constexpr const char* name = "host";
};

namespace detail {

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

/// Smaller blocks always come from the heap.
inline constexpr std::size_t least_host_memory = 4096;

/// Alignment of fresh storage: a cache line, and enough for any vector instruction.
inline constexpr std::size_t storage_alignment = 64;

[[noreturn]] inline void throw_negative_extent(index_t extent, int d) {
  throw Error("Tensor", "extent " + std::to_string(extent) + " of dimension " + std::to_string(d) +
                            " is negative");
}

/// The bytes of an array.
///
/// @throws Error if an extent is negative, or if the others than zero multiply to more bytes than
///         an index can count (so that no stride overflows either)
inline std::size_t checked_bytes(const index_t* extents, int dims, std::size_t element) {
  auto bytes = index_t(element);
  bool empty = false, overflows = false;
  for (int d = 0; d < dims; ++d) {
    if (extents[d] < 0) throw_negative_extent(extents[d], d);
    empty = empty || extents[d] == 0;
    overflows = __builtin_mul_overflow(bytes, extents[d] == 0 ? 1 : extents[d], &bytes) || overflows;
  }
  if (overflows) throw Error("Tensor", "the extents multiply to more than an index can count");
  return empty ? 0 : std::size_t(bytes);
}

/// Returns what `allocate_bytes` took from the heap, or from another source.
struct ReturnHostMemory {
  std::shared_ptr<HostMemory> source{};

  void operator()(void* data) const {
    if (source != nullptr) source->release(data);
    else ::operator delete(data, std::align_val_t{storage_alignment});
  }
};

}  // namespace detail

/// Fresh, uninitialised memory; the last owner returns it.
/// @throws Error if there is not enough memory
inline std::shared_ptr<void> allocate_bytes(Host, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes >= detail::least_host_memory) {
    if (const std::shared_ptr<detail::HostMemory> memory = detail::host_memory())
      if (void* data = memory->allocate(bytes)) return {data, detail::ReturnHostMemory{memory}};
  }
  void* data = ::operator new(bytes, std::align_val_t{detail::storage_alignment}, std::nothrow);
  if (data == nullptr)
    throw Error("Tensor", "out of memory: " + std::to_string(bytes) + " bytes were asked for");
  return {data, detail::ReturnHostMemory{}};
}

/// Whether the memory is of `allocate_bytes`, not the user's.
inline bool is_allocated(Host, const std::shared_ptr<void>& storage) {
  return std::get_deleter<detail::ReturnHostMemory>(storage) != nullptr;
}

}  // namespace cleave
