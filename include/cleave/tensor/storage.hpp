// Memory that tensors share: its ownership, device and release.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/host_cache.hpp>
#include <cleave/tensor/host_memory.hpp>

namespace cleave::inline v0 {

/// Memory of the process that the CPU reads and writes.
struct Host {
  static constexpr const char* name = "host";
};

namespace detail {

[[noreturn]] void throw_negative_extent(index_t extent, int d);

[[noreturn]] void throw_too_many_elements();

/// The bytes of an array.
///
/// @throws Error if an extent is negative, or if the non-zero extents multiply to more bytes than
///         index_t can hold (so that no stride overflows either)
constexpr std::size_t checked_bytes(const index_t* extents, int dims, std::size_t element) {
  constexpr index_t largest = std::numeric_limits<index_t>::max();
  auto bytes = index_t(element);
  bool empty = false, overflows = false;
  for (int d = 0; d < dims; ++d) {
    if (extents[d] < 0) throw_negative_extent(extents[d], d);
    if (extents[d] == 0) empty = true;
    else if (!std::is_constant_evaluated())
      overflows = __builtin_mul_overflow(bytes, extents[d], &bytes) || overflows;
    else if (overflows = overflows || bytes > largest / extents[d]; !overflows)  // as nvcc needs it
      bytes *= extents[d];
  }
  if (overflows) throw_too_many_elements();
  return empty ? 0 : std::size_t(bytes);
}

/// Returns memory that `allocate_bytes` took from the heap, the rank's cache, or another source.
struct ReturnHostMemory {
  std::size_t bytes = 0;
  std::shared_ptr<HostCache> cache{};  ///< counts the block; null: not counted
  std::shared_ptr<HostMemory> source{};
  unsigned changes = 0;  ///< @see note_change

  void operator()(void* data) const;
};

/// Reports a lack of memory, with the bytes that tensors of this rank hold if known.
[[noreturn]] void throw_out_of_memory(std::size_t bytes, const HostCache* cache);

/// For memory in one block with its reference counts, which is freed with them.
struct ReturnWithCounts {
  unsigned changes = 0;  ///< @see note_change

  void operator()(void*) const {}
};

/// For elements with spare ones around them, a margin, in memory that this holds.
struct ReturnMargin {
  std::shared_ptr<void> memory;
  void* first;    ///< the first element inside the margin
  Shape extents;  ///< of the elements inside
  Shape strides;
  Shape width;                 ///< spare elements at both sides of each dimension
  mutable unsigned fills = 0;  ///< how often ghosts were written to them

  void operator()(void*) const {}
};

/// An allocator with which a shared_ptr keeps its reference counts at the beginning of a heap
/// block, in front of the elements.
template <class T>
struct CountsInFront {
  using value_type = T;
  static constexpr std::size_t room = storage_alignment;

  void* block;

  explicit CountsInFront(void* of) : block(of) {}
  template <class U>
  CountsInFront(const CountsInFront<U>& other) : block(other.block) {}

  T* allocate(std::size_t) const {
    static_assert(sizeof(T) <= room && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(block);
  }
  void deallocate(T*, std::size_t) const { ::operator delete(block); }
  bool operator==(const CountsInFront&) const = default;
};

/// A few bytes and their reference counts in one heap block: a third of the time of two blocks.
std::shared_ptr<void> allocate_few_bytes(std::size_t bytes);

}  // namespace detail

/// Fresh, uninitialised memory; the last owner returns it.
///
/// From 4 KiB on, taken from the process's `HostMemory` if there is one, else from the rank's
/// cache, else from the heap.
/// @throws Error if there is not enough memory
std::shared_ptr<void> allocate_bytes(Host, std::size_t bytes);

namespace detail {

/// The number of changes to elements in memory of `allocate_bytes`; null for other memory.
unsigned* changes_of(const std::shared_ptr<void>& storage);

}  // namespace detail

/// Whether the memory comes from `allocate_bytes`, not from the user.
inline bool is_allocated(Host, const std::shared_ptr<void>& storage) {
  return detail::changes_of(storage) != nullptr;
}

/// Counts an in-place change of elements in memory of `allocate_bytes`, so that code that has saved
/// such a tensor can detect it. Changes of other memory are not counted.
inline void note_change(Host, const std::shared_ptr<void>& storage) {
  if (unsigned* const changes = detail::changes_of(storage)) ++*changes;
}
/// The number of changes counted.
inline unsigned changes_in(Host, const std::shared_ptr<void>& storage) {
  const unsigned* const changes = detail::changes_of(storage);
  return changes != nullptr ? *changes : 0;
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/tensor/storage_body.hpp>
#endif
