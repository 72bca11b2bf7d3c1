// Allocating the memory of tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/tensor/host_cache.hpp>
#include <cleave/tensor/host_memory.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace detail {

CLEAVE_INLINE void throw_negative_extent(index_t extent, int d) {
  throw Error("Tensor", "extent " + std::to_string(extent) + " of dimension " + std::to_string(d) +
                            " is negative");
}

CLEAVE_INLINE void throw_too_many_elements() {
  throw Error("Tensor", "the product of the extents does not fit in index_t");
}

CLEAVE_INLINE void throw_out_of_memory(std::size_t bytes, const HostCache* cache) {
  std::string text = "out of memory: " + std::to_string(bytes) + " bytes requested";
  if (cache != nullptr)
    text += ", tensors of this rank hold " + std::to_string(cache->stats().allocated);
  throw Error("Tensor", text);
}

CLEAVE_INLINE void ReturnHostMemory::operator()(void* data) const {
  if (source != nullptr) {
    source->release(data);
    if (cache != nullptr) cache->discount(bytes);
  } else if (cache != nullptr) {
    cache->deallocate(data, bytes);
  } else {
    ::operator delete(data, std::align_val_t{storage_alignment});
  }
}

CLEAVE_INLINE std::shared_ptr<void> allocate_few_bytes(std::size_t bytes) {
  constexpr std::size_t room = CountsInFront<std::byte>::room;
  std::size_t space = bytes + storage_alignment - __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  void* const block = ::operator new(room + space, std::nothrow);
  if (block == nullptr) throw_out_of_memory(bytes, nullptr);
  void* data = static_cast<std::byte*>(block) + room;
  std::align(storage_alignment, bytes, data, space);
  poison(static_cast<std::byte*>(data) + bytes, space - bytes);
  return {data, ReturnWithCounts{}, CountsInFront<std::byte>(block)};
}

CLEAVE_INLINE unsigned* changes_of(const std::shared_ptr<void>& storage) {
  if (auto* const few = std::get_deleter<ReturnWithCounts>(storage)) return &few->changes;
  if (auto* const memory = std::get_deleter<ReturnHostMemory>(storage)) return &memory->changes;
  if (auto* const margin = std::get_deleter<ReturnMargin>(storage))
    return changes_of(margin->memory);
  return nullptr;
}

}  // namespace detail

CLEAVE_INLINE std::shared_ptr<void> allocate_bytes(Host, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes < detail::least_cached_bytes) return detail::allocate_few_bytes(bytes);
  std::shared_ptr<detail::HostCache> cache = detail::host_cache();
  if (const std::shared_ptr<detail::HostMemory> memory = detail::memory_source()) {
    if (void* data = memory->allocate(bytes)) {
      if (cache != nullptr) cache->count(bytes);
      return {data, detail::ReturnHostMemory{bytes, std::move(cache), memory, 0}};
    }
  }
  void* data = cache != nullptr ? cache->allocate(bytes)
                                : ::operator new(bytes, std::align_val_t{detail::storage_alignment},
                                                 std::nothrow);
  if (data == nullptr) detail::throw_out_of_memory(bytes, cache.get());
  return {data, detail::ReturnHostMemory{bytes, std::move(cache), nullptr, 0}};
}

}  // namespace cleave::inline v0
