// What kernels tell the host of indices that do not exist.
//
// A kernel cannot throw, and nothing waits for its answer: it writes what it finds to memory of the
// host, which whatever waits on the host next looks at.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/config.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/cuda/error.hpp>
#include <cleave/core/error.hpp>

namespace cleave::cuda::detail {

/// A call whose indices kernels look at.
struct IndexedCall {
  const char* operation;  ///< what the user called: a literal
  index_t extent;         ///< indices lie in [0, extent)
  index_t shift;          ///< by how much kernels see an index that is too large exceed the user's

  friend bool operator==(const IndexedCall&, const IndexedCall&) = default;
};

/// The call in memory that is never freed: one of each kind, which a graph may name at any time.
inline const IndexedCall* remember(const IndexedCall& call) {
  static std::mutex mutex;
  static auto& calls = *new std::vector<std::unique_ptr<const IndexedCall>>;
  const std::lock_guard lock(mutex);
  for (const auto& known : calls)
    if (*known == call) return known.get();
  return calls.emplace_back(std::make_unique<const IndexedCall>(call)).get();
}

/// An index that does not exist, as a kernel has found it. Written by one access, the last counts:
/// the host sees all of it or nothing.
struct alignas(16) WrongIndex {
  const IndexedCall* call = nullptr;  ///< none: all is well
  index_t index = 0;
};

/// Pinned memory for what kernels find, a place for each thread. It is never freed: graphs of a
/// thread that has gone may still write there.
class WrongIndexPlaces {
 public:
  static WrongIndexPlaces& get() {
    static WrongIndexPlaces& places = *new WrongIndexPlaces;
    return places;
  }

  WrongIndex* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) pin();
    WrongIndex* const place = free_.back();
    free_.pop_back();
    *place = {};
    return place;
  }
  void give_back(WrongIndex* place) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);  // there is room for all
  }

 private:
  WrongIndexPlaces() = default;

  void pin() {
    constexpr std::size_t count = 64;
    const cleave::detail::CaptureMode mode(cudaStreamCaptureModeRelaxed);  // it is in no stream
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, count * sizeof(WrongIndex),
                        cudaHostAllocPortable | cudaHostAllocMapped),
          "cuda::allocate_pinned");
    free_.reserve(made_ += count);
    for (std::size_t i = 0; i < count; ++i) free_.push_back(static_cast<WrongIndex*>(memory) + i);
  }

  std::mutex mutex_;
  std::vector<WrongIndex*> free_;
  std::size_t made_ = 0;
};

/// The place of a thread, once there is one.
struct WrongIndexOfThread {
  WrongIndexOfThread() = default;
  WrongIndexOfThread(const WrongIndexOfThread&) = delete;  // the thread has one
  WrongIndexOfThread& operator=(const WrongIndexOfThread&) = delete;
  ~WrongIndexOfThread() {
    if (place != nullptr) WrongIndexPlaces::get().give_back(place);
  }

  static WrongIndexOfThread& get() {
    static thread_local WrongIndexOfThread one;
    return one;
  }

  WrongIndex* place = nullptr;
};

/// Where the kernels write that this thread enqueues. The first call of a process pins memory.
inline WrongIndex* wrong_index_of_thread() {
  WrongIndex*& place = WrongIndexOfThread::get().place;
  if (place == nullptr) place = WrongIndexPlaces::get().take();
  return place;
}

/// @throws Error, once, if a kernel that has run has met an index that does not exist
inline void verify_indices() {
  WrongIndex* const place = WrongIndexOfThread::get().place;
  if (place == nullptr) return;
  const IndexedCall* const call = std::atomic_ref(place->call).exchange(nullptr);
  if (call == nullptr) return;
  const index_t index = place->index < 0 ? place->index : place->index - call->shift;
  throw Error(call->operation, "index " + std::to_string(index) + " is not in [0, " +
                                   std::to_string(call->extent) + ")");
}

}  // namespace cleave::cuda::detail
