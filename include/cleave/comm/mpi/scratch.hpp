// The memory that a call needs besides the caller's and its schedule's. A group keeps some of it
// from call to call: allocating it takes a noticeable fraction of a short call.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <cleave/comm/mpi/mpi_handle.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// Memory for the messages of one call.
class MpiScratch {
 public:
  /// Uninitialised; valid until `clear`. @throws Error if there is not enough memory
  std::byte* take(std::size_t bytes) {
    if (kept_ == nullptr && bytes <= kept_bytes) {
      void* const memory = ::operator new(kept_bytes, alignment, std::nothrow);
      kept_ = {memory, [](void* p) { ::operator delete(p, alignment); }};
    }
    if (kept_ == nullptr || bytes > kept_bytes - used_) {
      blocks_.push_back(allocate_bytes(Host{}, bytes));
      return static_cast<std::byte*>(blocks_.back().get());
    }
    std::byte* const begin = static_cast<std::byte*>(kept_.get()) + used_;
    used_ += (bytes + storage_alignment - 1) / storage_alignment * storage_alignment;
    return begin;
  }

  /// Frees all but the block for short calls.
  void clear() noexcept {
    blocks_.clear();
    used_ = 0;
  }

  /// Frees nothing before the process exits: messages may still arrive in it.
  void abandon() noexcept {
    try {
      for (std::shared_ptr<void>& block : blocks_) keep_until_exit(std::move(block));
      keep_until_exit(std::exchange(kept_, nullptr));
    } catch (...) {  // out of memory
    }
  }

 private:
  /// A multiple of `alignment`.
  static constexpr std::size_t kept_bytes = std::size_t(32) << 10;
  static constexpr std::align_val_t alignment{storage_alignment};

  std::shared_ptr<void> kept_;
  std::size_t used_ = 0;
  std::vector<std::shared_ptr<void>> blocks_;
};

}  // namespace cleave::inline v0::detail
