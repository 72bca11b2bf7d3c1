// Stream-ordered device memory from a memory pool of each device, and pinned host memory.
//
// Allocation and release do not wait: memory may be used by work enqueued on the stream after the
// allocation, and returns to the pool when the stream reaches the release by the last owner, unless
// the stream keeps it for its next tensors (freed_blocks.hpp). To use a tensor on another stream,
// join the streams with an event before the release. Memory that is released during a graph
// capture, but was not allocated in it, is freed after the capture.
//
// The pool is cleave's own, and keeps what is returned to it. If the device has too little memory,
// the host waits for the device, releases what the pool does not use, and tries once more. During a
// capture it must not wait, and need not: an allocation then only reserves addresses, and the
// launch of the graph takes memory, or fails (CUDA Programming Guide, "Graph Memory Nodes", "First
// Launch"); it is tried once more in the same way.
#pragma once

#include <atomic>
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

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The memory pool of a device, created once; it keeps the memory that is returned to it.
inline cudaMemPool_t device_pool(int device) {
  static std::mutex mutex;
  static cudaMemPool_t pools[64] = {};
  const std::lock_guard lock(mutex);
  if (device >= 64)
    throw Error("Tensor", "device " + std::to_string(device) +
                              " is not supported: device numbers must be below 64");
  cudaMemPool_t& pool = pools[device];
  if (pool != nullptr) return pool;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t made = nullptr;
  check(cudaMemPoolCreate(&made, &properties), "Tensor");
  std::uint64_t keep = UINT64_MAX;
  check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep), "Tensor");
  return pool = made;
}

/// Lets kernels on `reader` access the tensors of device `owner`. @pre can_access(reader, owner)
inline void share_pool(int owner, int reader) {
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = reader;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(device_pool(owner), &access, 1), "init_device_mesh");
}

/// The number of graphs that threads of this process are capturing.
inline std::atomic<int>& captures_under_way() {
  static std::atomic<int> count = 0;
  return count;
}

/// Frees memory whose last use has ended, and waits for the current stream.
inline cudaError_t free_now(const FreedBlocks::Taken& taken) {
  const cudaStream_t stream = current_stream().get();
  for (void* const block : taken) free_in_order(block, stream);
  return cudaStreamSynchronize(stream);
}

/// Releases the memory of the current device that is known to be free: in the pool, in that of
/// graphs, and what the current stream keeps, if its work has ended. Does not wait for work. Errors
/// are reported by the next use of the device.
inline void trim_pools() {
  const Stream& stream = current_stream();
  if (stream.freed() != nullptr && capture_at(stream.get()).status == cudaStreamCaptureStatusNone)
    if (const cudaError_t status = cudaStreamQuery(stream.get()); !not_ready(status)) {
      FreedBlocks::Taken taken;
      stream.freed()->take_all(taken);
      static_cast<void>(free_now(taken));
    }
  const int device = current_device();
  if (cudaMemPoolTrimTo(device_pool(device), 0) != cudaSuccess ||
      cudaDeviceGraphMemTrim(device) != cudaSuccess)
    static_cast<void>(cudaGetLastError());
}

/// Memory whose last owner released it while its stream was captured into a graph that had not
/// allocated it. The graph cannot free it, so it is freed after the capture. One list per thread.
class FreedInCapture {
 public:
  static FreedInCapture& of_thread() {
    static thread_local FreedInCapture list;
    return list;
  }

  FreedInCapture() = default;
  FreedInCapture(const FreedInCapture&) = delete;  // one per thread
  FreedInCapture& operator=(const FreedInCapture&) = delete;
  ~FreedInCapture() { give_back(); }

  /// If there is no memory for the list, the block is leaked.
  void add(void* data, const Stream& stream) noexcept {
    try {
      blocks_.emplace_back(data, stream);
    } catch (const std::bad_alloc&) {
    }
  }

  /// Frees blocks whose stream is no longer captured: called when a capture has ended, before the
  /// next allocation outside a capture, and when the thread ends.
  void give_back() noexcept {
    std::erase_if(blocks_, [](const std::pair<void*, Stream>& block) {
      if (capture_at(block.second.get()).status != cudaStreamCaptureStatusNone) return false;
      free_in_order(block.first, block.second.get());
      return true;
    });
  }

 private:
  std::vector<std::pair<void*, Stream>> blocks_;
};

/// A deleter that frees memory in the order of its stream, or lets the stream keep it.
struct FreeInOrder {
  Stream stream;
  std::size_t bytes;
  std::optional<unsigned long long> capture;  ///< the capture in which it was allocated
  unsigned changes = 0;                       ///< @see note_change

  void operator()(void* data) const noexcept {
    if (!capture && stream.freed() != nullptr && stream.freed()->keep(data, bytes)) return;
    const CaptureState now = capture_at(stream.get());
    if (now.status == cudaStreamCaptureStatusNone ||
        (now.status == cudaStreamCaptureStatusActive && capture == now.number))
      return free_in_order(data, stream.get());
    if (now.status == cudaStreamCaptureStatusInvalidated && capture) return;  // goes with the graph
    FreedInCapture::of_thread().add(data, stream);
  }
};

}  // namespace cuda::detail

namespace cuda {

/// Releases the memory of the current device that no tensor and no graph uses, for other libraries
/// and processes. `allocate_bytes` does this when memory runs out.
/// @pre   the current stream is not being captured
/// @cost  waits for the device, or, while another thread captures a `Graph`, which that would
///        invalidate, for the current stream only; later allocations are slow once
/// @throws Error if work of the device has failed
inline void release_idle() {
  detail::FreedInCapture::of_thread().give_back();
  detail::FreedBlocks::Taken taken;  // before the wait, which is for the work that has used them
  const bool all = detail::captures_under_way() == 0;
  if (all) detail::FreedBlocks::take_all_of_device(current_device(), taken);
  const cudaError_t status = all ? cudaDeviceSynchronize() : cudaSuccess;
  const cudaError_t freed = detail::free_now(taken);
  detail::trim_pools();
  detail::end_wait(status != cudaSuccess ? status : freed, "cuda::release_idle");
}

namespace detail {

/// Calls f() -> cudaError_t. If the device has too little memory, releases what is idle, and calls
/// it once more.
template <class F>
cudaError_t with_idle_memory(F f) {
  const cudaError_t status = f();
  if (status != cudaErrorMemoryAllocation) return status;
  static_cast<void>(cudaGetLastError());
  release_idle();
  return f();
}

/// "out of device memory: 4096 bytes requested, 512 of 2048 bytes of GPU 0 are free"
inline std::string out_of_memory(std::size_t bytes) {
  static_cast<void>(cudaGetLastError());
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "Tensor");
  return "out of device memory: " + std::to_string(bytes) + " bytes requested, " +
         std::to_string(free) + " of " + std::to_string(total) + " bytes of GPU " +
         std::to_string(current_device()) + " are free";
}

}  // namespace detail

}  // namespace cuda

/// Uninitialised memory for use on the current stream, aligned to 256 bytes.
/// @throws Error if there is no device, or not enough memory
inline std::shared_ptr<void> allocate_bytes(Cuda, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (cuda::detail::current_stream_slot() == nullptr) cuda::require_device("Tensor");
  const cuda::Stream& stream = cuda::current_stream();
  const std::optional<unsigned long long> capture = cuda::capture_of(stream);
  if (!capture) cuda::detail::FreedInCapture::of_thread().give_back();
  void* data = nullptr;
  if (!capture && stream.freed() != nullptr) data = stream.freed()->take(bytes);
  if (data != nullptr) return {data, cuda::detail::FreeInOrder{stream, bytes, capture, 0}};
  const cudaMemPool_t pool = cuda::detail::device_pool(cuda::current_device());
  const auto allocate = [&] { return cudaMallocFromPoolAsync(&data, bytes, pool, stream.get()); };
  const cudaError_t status = capture ? allocate() : cuda::detail::with_idle_memory(allocate);
  if (status == cudaErrorMemoryAllocation)
    throw Error("Tensor", cuda::detail::out_of_memory(bytes));
  cuda::check(status, "Tensor");
  return {data, cuda::detail::FreeInOrder{stream, bytes, capture, 0}};
}

namespace cuda::detail {

/// The release of memory of `allocate_bytes`, also with a margin; null for other memory.
inline FreeInOrder* release_of(const std::shared_ptr<void>& storage) {
  if (auto* const margin = std::get_deleter<cleave::detail::ReturnMargin>(storage))
    return release_of(margin->memory);
  return std::get_deleter<FreeInOrder>(storage);
}

}  // namespace cuda::detail

/// Whether the memory is from `allocate_bytes`, not the user's.
inline bool is_allocated(Cuda, const std::shared_ptr<void>& storage) {
  return cuda::detail::release_of(storage) != nullptr;
}

/// @see note_change(Host, ..)
inline void note_change(Cuda, const std::shared_ptr<void>& storage) {
  if (auto* const memory = cuda::detail::release_of(storage)) ++memory->changes;
}
inline unsigned changes_in(Cuda, const std::shared_ptr<void>& storage) {
  const auto* const memory = cuda::detail::release_of(storage);
  return memory != nullptr ? memory->changes : 0;
}

namespace cuda {

/// Frees memory that was allocated on another stream in the order of the current stream, which must
/// already wait for the other stream's work. No effect on memory from other allocators.
inline void hand_over(const std::shared_ptr<void>& storage) {
  if (auto* release = detail::release_of(storage)) release->stream = current_stream();
}

/// Pinned host memory, which a GPU copies to and from without staging; the last owner frees it.
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

}  // namespace cleave::inline v0
