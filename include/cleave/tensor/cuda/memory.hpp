// Memory of the GPU, in stream order, from the device's pool; and pinned memory of the host.
//
// Allocation and release take a few hundred nanoseconds and wait for nothing: memory is there for
// what is enqueued on the stream after the call, and returns to the pool when the stream gets to
// where its last owner let go of it. Whoever uses a tensor on another stream joins the two with an
// event before letting go. What a capture into a graph lets go of, but did not allocate, returns
// after the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave {

namespace cuda::detail {

/// Prepares the pool of the current device, once: it keeps what is returned to it.
inline cudaMemPool_t device_pool() {
  static std::mutex mutex;
  static cudaMemPool_t pools[64] = {};
  require_device("Tensor");
  const int device = current_device();
  const std::lock_guard lock(mutex);
  if (device >= 64) throw Error("Tensor", "devices are numbered 0 to 63");
  cudaMemPool_t& pool = pools[device];
  if (pool != nullptr) return pool;
  cudaMemPool_t made = nullptr;
  check(cudaDeviceGetDefaultMemPool(&made, device), "Tensor");
  std::uint64_t keep = UINT64_MAX;
  check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep), "Tensor");
  return pool = made;
}

/// Lets kernels on one device read the tensors of another one. @pre can_access(reader, owner)
inline void share_pool(int owner, int reader) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, owner), "init_device_mesh");
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = reader;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(pool, &access, 1), "init_device_mesh");
}

/// Gives memory back when the stream gets there. What goes wrong is reported by whatever uses the
/// device next.
inline void free_in_order(void* data, const Stream& stream) noexcept {
  if (cudaFreeAsync(data, stream.get()) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

/// Memory whose last owner went while its stream was captured into a graph that had not allocated
/// it. Such a graph cannot free it: it waits for the end of the capture. One list per thread.
class FreedInCapture {
 public:
  static FreedInCapture& of_thread() {
    static thread_local FreedInCapture list;
    return list;
  }

  FreedInCapture() = default;
  FreedInCapture(const FreedInCapture&) = delete;  // the thread has one
  FreedInCapture& operator=(const FreedInCapture&) = delete;
  ~FreedInCapture() { give_back(); }

  /// Without memory for the list the block is lost.
  void add(void* data, const Stream& stream) noexcept {
    try {
      blocks_.emplace_back(data, stream);
    } catch (const std::bad_alloc&) {
    }
  }

  /// Frees what waits for no capture any more: called when one has ended, before the next
  /// allocation outside of one, and when the thread ends.
  void give_back() noexcept {
    std::erase_if(blocks_, [](const std::pair<void*, Stream>& block) {
      if (capture_at(block.second).status != cudaStreamCaptureStatusNone) return false;
      free_in_order(block.first, block.second);
      return true;
    });
  }

 private:
  std::vector<std::pair<void*, Stream>> blocks_;
};

/// What has been taken while a stream of this thread was captured, or let go of meanwhile, and must
/// not be anyone else's before the graph goes. `Graph` takes it over; a capture by other means
/// leaves it alone. One list per thread.
class KeptForGraph {
 public:
  using Memory = std::vector<std::shared_ptr<void>>;

  static KeptForGraph& of_thread() {
    static thread_local KeptForGraph list;
    return list;
  }

  KeptForGraph() = default;
  KeptForGraph(const KeptForGraph&) = delete;  // the thread has one
  KeptForGraph& operator=(const KeptForGraph&) = delete;
  ~KeptForGraph() {
    if (!memory_.empty()) new Memory(std::move(memory_));  // graphs may use it for ever
  }

  void add(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }
  Memory take() { return std::exchange(memory_, {}); }

 private:
  Memory memory_;
};

/// Gives memory back when its stream gets there.
struct FreeInOrder {
  Stream stream;
  std::optional<unsigned long long> capture;  ///< the one that it was allocated in
  unsigned changes = 0;                       ///< @see note_change

  void operator()(void* data) const noexcept {
    const CaptureState now = capture_at(stream);
    if (now.status == cudaStreamCaptureStatusNone ||
        (now.status == cudaStreamCaptureStatusActive && capture == now.number))
      return free_in_order(data, stream);
    if (now.status == cudaStreamCaptureStatusInvalidated && capture) return;  // goes with its graph
    FreedInCapture::of_thread().add(data, stream);
  }
};

}  // namespace cuda::detail

/// Fresh, uninitialised, for the current stream; aligned to 256 bytes.
/// @throws Error if there is no device, or not enough memory
inline std::shared_ptr<void> allocate_bytes(Cuda, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const cudaMemPool_t pool = cuda::detail::device_pool();
  const cuda::Stream& stream = cuda::current_stream();
  const std::optional<unsigned long long> capture = cuda::capture_of(stream);
  if (!capture) cuda::detail::FreedInCapture::of_thread().give_back();
  void* data = nullptr;
  const cudaError_t status = cudaMallocFromPoolAsync(&data, bytes, pool, stream.get());
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error("Tensor", "out of device memory: " + std::to_string(bytes) + " bytes requested");
  }
  cuda::check(status, "Tensor");
  return {data, cuda::detail::FreeInOrder{stream, capture, 0}};
}

/// Whether the memory is of `allocate_bytes`, not the user's, nor kept for communication.
inline bool is_allocated(Cuda, const std::shared_ptr<void>& storage) {
  return std::get_deleter<cuda::detail::FreeInOrder>(storage) != nullptr;
}

/// @see note_change(Host, ..)
inline void note_change(Cuda, const std::shared_ptr<void>& storage) {
  if (auto* const memory = std::get_deleter<cuda::detail::FreeInOrder>(storage)) ++memory->changes;
}
inline unsigned changes_in(Cuda, const std::shared_ptr<void>& storage) {
  const auto* const memory = std::get_deleter<cuda::detail::FreeInOrder>(storage);
  return memory != nullptr ? memory->changes : 0;
}

namespace cuda {

/// Memory that was allocated on another stream goes back in the order of the current one, for
/// which the other one's work has been waited for. Does nothing to memory of other origin.
inline void hand_over(const std::shared_ptr<void>& storage) {
  if (auto* release = std::get_deleter<detail::FreeInOrder>(storage))
    release->stream = current_stream();
}

/// Host memory that a GPU copies to and from without staging; the last owner returns it.
/// @cost  slow (the driver pins pages): keep and reuse it
/// @throws Error if there is no device, or not enough memory
inline std::shared_ptr<void> allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  require_device("cuda::allocate_pinned");
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cuda::allocate_pinned");
  return {data, [](void* p) { static_cast<void>(cudaFreeHost(p)); }};
}

}  // namespace cuda

}  // namespace cleave
