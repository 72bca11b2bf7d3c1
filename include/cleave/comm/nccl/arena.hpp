// Memory that NCCL transfers without staging copies: blocks allocated by ncclMemAlloc, registered
// once with every communicator of the rank.
//
// Communicators allocate their buffers here, as do tensors on request (`cuda::communicable`). NCCL
// copies other device memory through its own buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/nccl/handle.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/cuda/error.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

class NcclArena : public std::enable_shared_from_this<NcclArena> {
 public:
  /// Block sizes are multiples of this, the smallest allocation of ncclMemAlloc.
  static constexpr std::size_t granule = std::size_t(2) << 20;

  /// @param timeout  most seconds that the destructor waits for work on the memory
  explicit NcclArena(double timeout) : patience_(std::min(timeout, patience_of_ends)) {}
  NcclArena(const NcclArena&) = delete;  // blocks refer to it
  NcclArena& operator=(const NcclArena&) = delete;
  /// Waits for the work on each block and frees it: ncclMemFree is not ordered by streams. Blocks
  /// whose work is not known to have ended are not freed.
  ~NcclArena() {
    const auto deadline = deadline_after(patience_);
    for (const auto& block : blocks_)
      if (wait_quietly(block->released.get(), deadline, [] { return false; }))
        static_cast<void>(ncclMemFree(block->data));
  }

  /// Uninitialised memory for the current stream. A block taken during capture of the stream is
  /// kept until the graph is destroyed.
  /// @throws Error if there is not enough memory
  std::shared_ptr<void> take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const cuda::Stream& stream = cuda::current_stream();
    const bool captured = cuda::capture_of(stream).has_value();
    const std::lock_guard lock(mutex_);
    Block* block = best_fit(bytes, captured);
    if (block == nullptr) block = add_block((bytes + granule - 1) / granule * granule);
    else if (!captured && !(block->stream == stream)) block->released.wait_on(stream);
    block->taken = true;
    const std::shared_ptr<void> memory{
        block->data,
        [arena = shared_from_this(), block](void*) noexcept { arena->give_back(arena, *block); }};
    if (captured) cuda::detail::KeptForGraph::of_thread().add(memory);
    return memory;
  }

  /// Registers all blocks, present and future, with a communicator.
  void enroll(const std::shared_ptr<NcclHandle>& comm) {
    const std::lock_guard lock(mutex_);
    for (const auto& block : blocks_) enroll(*block, comm);
    comms_.push_back(comm);
  }
  /// Deregisters all blocks; called before the communicator is destroyed.
  void dismiss(const std::shared_ptr<NcclHandle>& comm) noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& block : blocks_)
      std::erase_if(block->registrations, [&](const auto& registration) {
        if (registration.first != comm) return false;
        comm->use(
            [&](ncclComm_t c) { static_cast<void>(ncclCommDeregister(c, registration.second)); });
        return true;
      });
    std::erase(comms_, comm);
  }

 private:
  struct Block {
    void* data;
    std::size_t size;
    cuda::Stream stream;     ///< on which the last owner released it
    cuda::Event released{};  ///< recorded on `stream` at the release
    bool taken = false;
    std::vector<std::pair<std::shared_ptr<NcclHandle>, void*>> registrations{};
  };

  /// The smallest free block that is large enough, and not too large. A captured stream cannot wait
  /// for other streams: it takes only blocks whose work has ended.
  Block* best_fit(std::size_t bytes, bool captured) const {
    Block* best = nullptr;
    for (const auto& block : blocks_) {
      if (block->taken || block->size < bytes || block->size > 2 * bytes + granule) continue;
      if (best != nullptr && block->size >= best->size) continue;
      if (captured && !has_ended(*block)) continue;
      best = block.get();
    }
    return best;
  }

  static bool has_ended(const Block& block) {
    const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is not part of a capture
    return !cuda::detail::not_ready(cudaEventQuery(block.released.get()));
  }

  Block* add_block(std::size_t size) {
    // NCCL may call cudaMalloc, which uses no stream but is forbidden during captures otherwise
    const CaptureMode mode(cudaStreamCaptureModeRelaxed);
    auto block = std::make_unique<Block>(Block{nullptr, size, cuda::current_stream()});
    if (const ncclResult_t status = ncclMemAlloc(&block->data, size); status != ncclSuccess)
      throw Error("Tensor", "out of device memory: " + std::to_string(size) +
                                " bytes requested for communication: " +
                                nccl_text(status, "ncclMemAlloc", nullptr));
    for (const auto& comm : comms_) enroll(*block, comm);
    return blocks_.emplace_back(std::move(block)).get();
  }

  static void enroll(Block& block, const std::shared_ptr<NcclHandle>& comm) {
    void* registration = nullptr;
    ncclResult_t status = ncclInvalidUsage;
    comm->use(
        [&](ncclComm_t c) { status = ncclCommRegister(c, block.data, block.size, &registration); });
    if (status == ncclSuccess && registration != nullptr)
      block.registrations.emplace_back(comm, registration);  // otherwise NCCL stages it: slower
  }

  void give_back(const std::shared_ptr<NcclArena>& self, Block& block) noexcept {
    try {
      const cuda::Stream& stream = cuda::current_stream();
      if (cuda::capture_of(stream))  // the graph uses the block at every launch
        return cuda::detail::KeptForGraph::of_thread().add(
            {block.data, [self, &block](void*) noexcept { self->give_back(self, block); }});
      block.released.record(stream);
      const std::lock_guard lock(mutex_);
      block.stream = stream;
      block.taken = false;
    } catch (const std::exception&) {  // no memory, or a device error: not reused
    }
  }

  double patience_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<NcclHandle>> comms_;
};

/// The temporary memory of one call: pieces of a few blocks, released together.
class NcclTemporaries {
 public:
  explicit NcclTemporaries(std::shared_ptr<NcclArena> arena) : arena_(std::move(arena)) {}

  /// Aligned to 256 bytes.
  void* take(std::size_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    if (bytes > left_) {
      left_ = std::max(bytes, NcclArena::granule);
      next_ = static_cast<std::byte*>(blocks_.emplace_back(arena_->take(left_)).get());
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  std::shared_ptr<NcclArena> arena_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace cleave::detail
