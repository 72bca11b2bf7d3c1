// Memory that NCCL moves without copying it first: taken by ncclMemAlloc in slabs, registered once
// with every communicator of the rank.
//
// Communicators take their buffers from it, and tensors do that ask for it (`cuda::communicable`).
// Plain memory works, too: NCCL then copies through buffers of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/cuda/capture_mode.hpp>
#include <cleave/comm/cuda/nccl_handle.hpp>
#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/core/cuda/error.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

class NcclArena : public std::enable_shared_from_this<NcclArena> {
 public:
  /// @param timeout  seconds that the end may wait for what is at work on the memory
  explicit NcclArena(double timeout) : patience_(std::min(timeout, patience_of_ends)) {}
  NcclArena(const NcclArena&) = delete;  // blocks refer to it
  NcclArena& operator=(const NcclArena&) = delete;
  /// Frees the memory, which is not in the order of any stream, when all have ended their work on
  /// it. What is not known to have ended keeps its memory.
  ~NcclArena() {
    const auto deadline = deadline_after(patience_);
    bool ended = true;
    for (const Block& block : free_)
      for (const Release& release : block.released)
        ended = ended && wait_quietly(release.event->get(), deadline, [] { return false; });
    if (!ended) return;
    for (Slab& slab : slabs_) static_cast<void>(ncclMemFree(slab.data));
  }

  /// Uninitialised memory for the current stream, aligned to 512 bytes. What is taken while the
  /// stream is captured is the graph's, and never anyone else's.
  /// @throws Error if there is not enough
  std::shared_ptr<void> take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::size_t size = (bytes + granule - 1) / granule * granule;
    const cuda::Stream& stream = cuda::current_stream();
    const bool captured = cuda::capture_of(stream).has_value();
    const std::lock_guard lock(mutex_);
    auto block = best_fit(size, captured ? &stream : nullptr);
    if (block == free_.end()) block = add_slab(std::max(size, slab_bytes));
    for (const Release& release : block->released)  // whoever had it may still be at work on it
      if (!(release.stream == stream)) release.event->wait_on(stream);
    std::byte* data = block->data;
    const std::size_t slab = block->slab;
    if (block->size == size) {
      free_.erase(block);
    } else {
      block->data += size;
      block->size -= size;
    }
    return {data, [arena = shared_from_this(), size, slab, captured](void* p) noexcept {
              if (!captured) arena->give_back(static_cast<std::byte*>(p), size, slab);
            }};
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
        list[i].first->use(
            [&](ncclComm_t c) { static_cast<void>(ncclCommDeregister(c, list[i].second)); });
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
  /// A stream's last use of a block.
  struct Release {
    cuda::Stream stream;
    std::uint64_t number;  ///< of all releases
    std::shared_ptr<cuda::Event> event;
  };
  struct Block {
    std::byte* data;
    std::size_t size;
    std::size_t slab;
    std::vector<Release> released{};  ///< one of each stream at most
  };
  using Blocks = std::vector<Block>;

  /// The smallest block that is large enough; with `only`, of those no other stream has used: a
  /// stream that is captured cannot wait for it.
  Blocks::iterator best_fit(std::size_t size, const cuda::Stream* only) {
    auto best = free_.end();
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      if (block->size < size || (best != free_.end() && block->size >= best->size)) continue;
      const auto elsewhere = [&](const Release& r) { return !(r.stream == *only); };
      if (only == nullptr || std::ranges::none_of(block->released, elsewhere)) best = block;
    }
    return best;
  }

  Blocks::iterator add_slab(std::size_t size) {
    // NCCL may call cudaMalloc, which is in no stream, but which this thread's captures forbid
    const CaptureMode mode(cudaStreamCaptureModeRelaxed);
    void* data = nullptr;
    if (const ncclResult_t status = ncclMemAlloc(&data, size); status != ncclSuccess)
      throw Error("Tensor", "out of device memory: " + std::to_string(size) +
                                " bytes for communication were asked for: " +
                                nccl_text(status, "ncclMemAlloc", nullptr));
    slabs_.push_back({data, size});
    for (const auto& comm : comms_) enroll(slabs_.back(), comm);
    return insert({static_cast<std::byte*>(data), size, slabs_.size() - 1});
  }

  /// Puts a block among the free ones, which lie by address, and joins it with its neighbours.
  Blocks::iterator insert(Block block) {
    const auto joins = [](const Block& front, const Block& back) {
      return front.slab == back.slab && front.data + front.size == back.data;
    };
    const auto append = [](Block& front, const Block& back) {
      front.size += back.size;
      for (const Release& release : back.released) {
        const auto same =
            std::find_if(front.released.begin(), front.released.end(),
                         [&](const Release& r) { return r.stream == release.stream; });
        if (same == front.released.end()) front.released.push_back(release);
        else if (same->number < release.number) *same = release;
      }
    };
    auto next = std::lower_bound(free_.begin(), free_.end(), block.data,
                                 [](const Block& b, std::byte* data) { return b.data < data; });
    if (next != free_.end() && joins(block, *next)) {
      append(block, *next);
      next = free_.erase(next);
    }
    if (next == free_.begin() || !joins(*(next - 1), block))
      return free_.insert(next, std::move(block));
    append(*(next - 1), block);
    return next - 1;
  }

  static void enroll(Slab& slab, const std::shared_ptr<NcclHandle>& comm) {
    void* registration = nullptr;
    ncclResult_t status = ncclSuccess;
    comm->use(
        [&](ncclComm_t c) { status = ncclCommRegister(c, slab.data, slab.size, &registration); });
    if (status == ncclSuccess && registration != nullptr)
      slab.registrations.emplace_back(comm, registration);  // otherwise NCCL copies: slower
  }

  void give_back(std::byte* data, std::size_t size, std::size_t slab) noexcept {
    try {
      const cuda::Stream& stream = cuda::current_stream();
      if (cuda::capture_of(stream)) return;  // a graph may use it whenever it is launched
      auto event = std::make_shared<cuda::Event>();
      event->record(stream);
      const std::lock_guard lock(mutex_);
      insert({data, size, slab, {{stream, releases_++, std::move(event)}}});
    } catch (const std::exception&) {  // no memory, or a broken device: the block is not used again
    }
  }

  double patience_;
  std::mutex mutex_;
  std::vector<Slab> slabs_;
  Blocks free_;
  std::uint64_t releases_ = 0;
  std::vector<std::shared_ptr<NcclHandle>> comms_;
};

/// Memory that calls which follow each other use in turn.
struct NcclBuffer {
  std::shared_ptr<void> data;
  std::size_t size = 0;
  std::size_t needed = 0;                   ///< by the calls at hand, or by the last ones
  std::vector<std::shared_ptr<void>> more;  ///< what they need beside it
  std::optional<cuda::Stream> stream;       ///< where it was used last
  cuda::Event last_use;
};

/// The temporary memory of one communicator: one buffer that is used again by every call, which
/// the stream puts after the one before. What does not fit is taken in addition, and the buffer
/// grows with the next call. Every capture into a graph has a buffer of its own, which the arena
/// keeps for it.
class NcclStaging {
 public:
  explicit NcclStaging(std::shared_ptr<NcclArena> arena) : arena_(std::move(arena)) {}
  NcclStaging(const NcclStaging&) = delete;  // owns buffers that streams are at work on
  NcclStaging& operator=(const NcclStaging&) = delete;
  /// The buffer is given back by the current stream, which is not always the one that used it last.
  ~NcclStaging() {
    try {
      const cuda::Stream& stream = cuda::current_stream();
      if (usual_.stream && !(*usual_.stream == stream) && !cuda::capture_of(stream))
        usual_.last_use.wait_on(stream);
    } catch (const std::exception&) {  // a broken device, on which nothing is at work
    }
  }

  void begin() {
    const cuda::Stream& stream = cuda::current_stream();
    if (const auto capture = cuda::capture_of(stream); capture != capture_) {
      capture_ = capture;
      captured_.reset();
      if (capture) captured_.emplace();
    }
    NcclBuffer& b = buffer();
    if (b.stream && !(*b.stream == stream)) b.last_use.wait_on(stream);
    b.stream = stream;
    if (b.needed > b.size) {
      const std::size_t size = b.needed;
      b.data = nullptr;
      b.size = b.needed = 0;  // there is no buffer if there is not enough memory
      b.data = arena_->take(size);
      b.size = size;
    }
    b.more.clear();
    b.needed = 0;
  }

  /// Aligned to 256 bytes; the same memory until the next `begin`.
  void* take(std::size_t bytes) {
    NcclBuffer& b = buffer();
    const std::size_t at = b.needed;
    b.needed += (bytes + 255) / 256 * 256;
    if (b.needed <= b.size) return static_cast<std::byte*>(b.data.get()) + at;
    return b.more.emplace_back(arena_->take(bytes)).get();
  }

  /// After everything that uses the memory has been enqueued.
  void end() {
    if (const NcclBuffer& b = buffer(); b.needed > 0) b.last_use.record(*b.stream);
  }

 private:
  NcclBuffer& buffer() { return captured_ ? *captured_ : usual_; }

  std::shared_ptr<NcclArena> arena_;
  NcclBuffer usual_;
  std::optional<unsigned long long> capture_;  ///< under way when `begin` was last called
  std::optional<NcclBuffer> captured_;         ///< its buffer
};

}  // namespace cleave::detail
