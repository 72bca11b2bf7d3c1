// Memory that NCCL moves without copying it first: taken by ncclMemAlloc in slabs, registered once
// with every communicator of the rank.
//
// Communicators take their buffers from it, and tensors do that ask for it (`cuda::communicable`).
// Plain memory works, too: NCCL then copies through buffers of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/comm/cuda/nccl_watch.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

class NcclArena : public std::enable_shared_from_this<NcclArena> {
 public:
  NcclArena() = default;
  NcclArena(const NcclArena&) = delete;  // blocks refer to it
  NcclArena& operator=(const NcclArena&) = delete;
  ~NcclArena() {
    for (Slab& slab : slabs_) static_cast<void>(ncclMemFree(slab.data));
  }

  /// Uninitialised memory for the current stream, aligned to 512 bytes.
  /// @throws Error if there is not enough
  std::shared_ptr<void> take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::size_t size = (bytes + granule - 1) / granule * granule;
    const std::lock_guard lock(mutex_);
    auto block = std::find_if(free_.begin(), free_.end(),
                              [&](const Block& b) { return b.size >= size; });
    if (block == free_.end()) {
      add_slab(std::max(size, slab_bytes));
      block = free_.end() - 1;
    }
    // whoever had it may still be at work on it, on another stream
    if (block->released != nullptr) block->released->wait_on(cuda::current_stream());
    void* data = block->data;
    if (block->size == size) {
      free_.erase(block);
    } else {
      block->data += size;
      block->size -= size;
    }
    return {data, [arena = shared_from_this(), size](void* p) noexcept { arena->give_back(p, size); }};
  }

  /// Registers all slabs, those to come too, with a communicator.
  void enroll(const std::shared_ptr<NcclHandle>& comm) {
    const std::lock_guard lock(mutex_);
    for (Slab& slab : slabs_) enroll(slab, comm);
    comms_.push_back(comm);
  }
  /// Before the communicator goes.
  void dismiss(const NcclHandle* comm) noexcept {
    const std::lock_guard lock(mutex_);
    for (Slab& slab : slabs_) {
      auto& list = slab.registrations;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].first.get() != comm) continue;
        list[i].first->use([&](ncclComm_t c) {
          static_cast<void>(ncclCommDeregister(c, list[i].second));
        });
        list.erase(list.begin() + long(i--));
      }
    }
    std::erase_if(comms_, [&](const auto& other) { return other.get() == comm; });
  }

 private:
  static constexpr std::size_t granule = 512;
  static constexpr std::size_t slab_bytes = std::size_t(64) << 20;

  struct Slab {
    void* data;
    std::size_t size;
    std::vector<std::pair<std::shared_ptr<NcclHandle>, void*>> registrations{};
  };
  struct Block {
    std::byte* data;
    std::size_t size;
    std::shared_ptr<cuda::Event> released{};
  };

  void add_slab(std::size_t size) {
    void* data = nullptr;
    if (const ncclResult_t status = ncclMemAlloc(&data, size); status != ncclSuccess)
      throw Error("Tensor", "out of device memory: " + std::to_string(size) +
                                " bytes for communication were asked for: " +
                                nccl_text(status, "ncclMemAlloc", nullptr));
    slabs_.push_back({data, size});
    for (const auto& comm : comms_) enroll(slabs_.back(), comm);
    free_.push_back({static_cast<std::byte*>(data), size});
  }

  static void enroll(Slab& slab, const std::shared_ptr<NcclHandle>& comm) {
    void* registration = nullptr;
    ncclResult_t status = ncclSuccess;
    comm->use([&](ncclComm_t c) {
      status = ncclCommRegister(c, slab.data, slab.size, &registration);
    });
    if (status == ncclSuccess && registration != nullptr)
      slab.registrations.emplace_back(comm, registration);  // otherwise NCCL copies: slower
  }

  void give_back(void* data, std::size_t size) noexcept {
    try {
      auto released = std::make_shared<cuda::Event>();
      released->record(cuda::current_stream());
      const std::lock_guard lock(mutex_);
      free_.push_back({static_cast<std::byte*>(data), size, std::move(released)});
    } catch (const std::exception&) {  // no memory, or a broken device: the block is not used again
    }
  }

  std::mutex mutex_;
  std::vector<Slab> slabs_;
  std::vector<Block> free_;
  std::vector<std::shared_ptr<NcclHandle>> comms_;
};

/// The temporary memory of one communicator: one buffer that is used again by every call, which
/// the stream puts after the one before. What does not fit is taken in addition, and the buffer
/// grows with the next call.
class NcclStaging {
 public:
  explicit NcclStaging(std::shared_ptr<NcclArena> arena) : arena_(std::move(arena)) {}

  void begin() {
    const cuda::Stream& stream = cuda::current_stream();
    if (stream_ && !(*stream_ == stream)) last_use_.wait_on(stream);
    stream_ = stream;
    if (needed_ > size_) {
      buffer_ = nullptr;
      size_ = needed_;
      buffer_ = arena_->take(size_);
    }
    more_.clear();
    needed_ = 0;
  }

  /// Aligned to 256 bytes; the same memory until the next `begin`.
  void* take(std::size_t bytes) {
    const std::size_t at = needed_;
    needed_ += (bytes + 255) / 256 * 256;
    if (needed_ <= size_) return static_cast<std::byte*>(buffer_.get()) + at;
    return more_.emplace_back(arena_->take(bytes)).get();
  }

  /// After everything that uses the memory has been enqueued.
  void end() {
    if (needed_ > 0) last_use_.record(*stream_);
  }

 private:
  std::shared_ptr<NcclArena> arena_;
  std::shared_ptr<void> buffer_;
  std::size_t size_ = 0;
  std::size_t needed_ = 0;  ///< by the calls at hand; before `begin` by the last ones
  std::vector<std::shared_ptr<void>> more_;
  std::optional<cuda::Stream> stream_;
  cuda::Event last_use_;
};

}  // namespace cleave::detail
