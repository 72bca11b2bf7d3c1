// Memory that NCCL moves without copying it first: blocks taken by ncclMemAlloc, registered once
// with every communicator of the rank.
//
// Communicators take their buffers from it, and tensors do that ask for it (`cuda::communicable`).
// Plain memory works, too: NCCL then copies through buffers of its own.
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
  /// Sizes of blocks are multiples of it: what ncclMemAlloc takes at least.
  static constexpr std::size_t granule = std::size_t(2) << 20;

  /// @param timeout  seconds that the end may wait for what is at work on the memory
  explicit NcclArena(double timeout) : patience_(std::min(timeout, patience_of_ends)) {}
  NcclArena(const NcclArena&) = delete;  // blocks refer to it
  NcclArena& operator=(const NcclArena&) = delete;
  /// Frees the memory, which is not in the order of any stream, when all have ended their work on
  /// it. What is not known to have ended keeps its memory.
  ~NcclArena() {
    const auto deadline = deadline_after(patience_);
    for (const auto& block : blocks_)
      if (wait_quietly(block->released.get(), deadline, [] { return false; }))
        static_cast<void>(ncclMemFree(block->data));
  }

  /// Uninitialised memory for the current stream. What is taken while the stream is captured is the
  /// graph's until that goes.
  /// @throws Error if there is not enough
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

  /// Registers all blocks, those to come too, with a communicator.
  void enroll(const std::shared_ptr<NcclHandle>& comm) {
    const std::lock_guard lock(mutex_);
    for (const auto& block : blocks_) enroll(*block, comm);
    comms_.push_back(comm);
  }
  /// Before the communicator goes.
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
    cuda::Stream stream;     ///< whose last owner let go of it
    cuda::Event released{};  ///< when that stream got there
    bool taken = false;
    std::vector<std::pair<std::shared_ptr<NcclHandle>, void*>> registrations{};
  };

  /// The smallest free block that is large enough, and not too large. A stream that is captured
  /// cannot wait for another one: nobody may be at work on its blocks.
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
    const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is of no capture
    return !cuda::detail::not_ready(cudaEventQuery(block.released.get()));
  }

  Block* add_block(std::size_t size) {
    // NCCL may call cudaMalloc, which is in no stream, but which this thread's captures forbid
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
      block.registrations.emplace_back(comm, registration);  // otherwise NCCL copies: slower
  }

  void give_back(const std::shared_ptr<NcclArena>& self, Block& block) noexcept {
    try {
      const cuda::Stream& stream = cuda::current_stream();
      if (cuda::capture_of(stream))  // a graph may use it whenever it is launched
        return cuda::detail::KeptForGraph::of_thread().add(
            {block.data, [self, &block](void*) noexcept { self->give_back(self, block); }});
      block.released.record(stream);
      const std::lock_guard lock(mutex_);
      block.stream = stream;
      block.taken = false;
    } catch (const std::exception&) {  // no memory, or a broken device: it is not used again
    }
  }

  double patience_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<NcclHandle>> comms_;
};

/// The temporary memory of one call: pieces of a few blocks, given back together.
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
