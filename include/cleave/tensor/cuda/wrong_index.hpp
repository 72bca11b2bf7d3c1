// Reports of out-of-range indices, and of rows with invalid elements, from kernels to the host.
//
// A kernel cannot throw, and the host does not wait for it: the kernel writes the index to pinned
// host memory, which the next wait on the host checks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/config.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::cuda::detail {

/// A call whose indices or rows kernels check.
struct IndexedCall {
  const char* operation;  ///< the user's call: a string literal
  index_t extent;         ///< valid indices are in [0, extent)
  index_t shift;          ///< by how much an index that is too large in a kernel exceeds the user's
  /// What is wrong with the row of the index: a string literal; null: the index is out of range.
  const char* fault = nullptr;

  friend bool operator==(const IndexedCall&, const IndexedCall&) = default;
};

inline const IndexedCall* remember_for_all(const IndexedCall& call) {
  static std::mutex mutex;
  static auto& calls = *new std::vector<std::unique_ptr<const IndexedCall>>;
  const std::lock_guard lock(mutex);
  for (const auto& known : calls)
    if (*known == call) return known.get();
  return calls.emplace_back(std::make_unique<const IndexedCall>(call)).get();
}

/// A copy of the call that is never freed, as graphs may refer to it; equal calls share a copy. The
/// last calls of a thread are found without a lock.
inline const IndexedCall* remember(const IndexedCall& call) {
  static thread_local std::array<const IndexedCall*, 8> recent{};
  static thread_local std::size_t next = 0;
  for (const IndexedCall* known : recent)
    if (known != nullptr && *known == call) return known;
  return recent[next++ % recent.size()] = remember_for_all(call);
}

/// A wrong index found by a kernel. Written by one access, so that the host sees all or
/// nothing of it; the last write counts.
struct alignas(16) WrongIndex {
  const IndexedCall* call = nullptr;  ///< null: no index was wrong
  index_t index = 0;
};

/// Pinned memory for reports of kernels, one place per thread. It is never freed: graphs of a
/// thread that has ended may still write to it.
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
    free_.push_back(place);  // capacity is reserved for all places
  }

 private:
  WrongIndexPlaces() = default;

  void pin() {
    constexpr std::size_t count = 64;
    const cleave::detail::CaptureMode mode(cudaStreamCaptureModeRelaxed);  // not in a stream
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

/// The place of a thread; null before its first use.
struct WrongIndexOfThread {
  WrongIndexOfThread() = default;
  WrongIndexOfThread(const WrongIndexOfThread&) = delete;  // one per thread
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

/// The place to which kernels of this thread write. The first call in a process pins memory.
inline WrongIndex* wrong_index_of_thread() {
  WrongIndex*& place = WrongIndexOfThread::get().place;
  if (place == nullptr) place = WrongIndexPlaces::get().take();
  return place;
}

/// @throws Error, once, if a kernel that has run has found a wrong index
inline void verify_indices() {
  WrongIndex* const place = WrongIndexOfThread::get().place;
  if (place == nullptr) return;
  const IndexedCall* const call = std::atomic_ref(place->call).exchange(nullptr);
  if (call == nullptr) return;
  if (call->fault != nullptr)
    throw Error(call->operation, "row " + std::to_string(place->index) + ": " + call->fault);
  const index_t index = place->index < 0 ? place->index : place->index - call->shift;
  throw Error(call->operation, "index " + std::to_string(index) + " is not in [0, " +
                                   std::to_string(call->extent) + ")");
}

}  // namespace cleave::inline v0::cuda::detail
