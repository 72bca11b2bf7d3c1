// Handles of NCCL communicators, which the rank uses and another thread may abort.
//
// The communicators are blocking: a call may wait until a peer has made its own. NCCL requires that
// no thread is inside a call on a communicator that is freed. An abort therefore first raises the
// flags that end kernels and calls, and frees the communicator when all threads have left it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/comm/nccl/types.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::detail {

/// Most seconds that a destructor waits for work that might never end.
inline constexpr double seconds_to_end = 10;

/// Polls an event until it completes or the deadline passes; does not throw.
/// @param stop  () -> bool: whether to give up earlier
/// @return whether the event has completed or failed
template <class Stop>
bool wait_quietly(cudaEvent_t event, std::chrono::steady_clock::time_point deadline, Stop stop) {
  const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is not part of a capture
  while (cuda::detail::not_ready(cudaEventQuery(event))) {
    if (std::chrono::steady_clock::now() > deadline || stop()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// An NCCL communicator that the rank's threads use and the failure detector may abort.
class NcclHandle {
 public:
  /// A communicator yet to be made. @see make
  NcclHandle() = default;
  /// A communicator of the user, who destroys it.
  explicit NcclHandle(ncclComm_t theirs) : comm_(theirs), owned_(false), made_(true) {}
  NcclHandle(const NcclHandle&) = delete;  // one owner destroys it
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// Calls f(comm), which may wait for a peer; does nothing if the communicator has been given up
  /// or is not made.
  template <class F>
  void use(F f) {
    if (!enter(true)) return;
    f(comm_);
    leave(true);
  }
  /// Calls f(ncclComm_t*), which makes the communicator. @return its status
  template <class F>
  ncclResult_t make(F f) {
    if (!enter(false)) return ncclInvalidUsage;
    const ncclResult_t status = f(&comm_);
    leave(status == ncclSuccess && comm_ != nullptr);
    return status;
  }

  /// For the user's own calls; null after a failure.
  ncclComm_t get() const {
    const std::lock_guard lock(mutex_);
    return given_up_ ? nullptr : comm_;
  }

  /// Forbids further use. @return whether it was allowed before
  bool give_up() noexcept {
    const std::lock_guard lock(mutex_);
    return !std::exchange(given_up_, true);
  }

  /// Within an NCCL group: aborts the communicator if it exists, is owned and not yet aborted.
  /// @pre given up; only one thread calls this
  /// @return whether a thread is still inside a call
  bool abort_in_group() noexcept {
    const bool used = in_use();  // threads that have left change nothing any more
    const ncclComm_t comm = std::atomic_ref(comm_).load(std::memory_order_acquire);
    if (owned_ && comm != nullptr && !std::exchange(aborted_, true))
      static_cast<void>(ncclCommAbort(comm));
    return used;
  }

  /// @pre given up
  void destroy() noexcept {
    while (in_use()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!owned_ || comm_ == nullptr) return;
    static_cast<void>(ncclCommFinalize(comm_));
    static_cast<void>(ncclCommDestroy(comm_));
  }

 private:
  bool enter(bool made) {
    const std::lock_guard lock(mutex_);
    if (given_up_ || made_ != made) return false;
    ++users_;
    return true;
  }
  void leave(bool made) {
    const std::lock_guard lock(mutex_);
    --users_;
    made_ = made;
  }
  bool in_use() const noexcept {
    const std::lock_guard lock(mutex_);
    return users_ > 0;
  }

  mutable std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  ///< NCCL sets it while it makes the communicator
  bool owned_ = true;
  bool made_ = false;
  bool given_up_ = false;
  bool aborted_ = false;
  int users_ = 0;
};

/// Aborts and destroys communicators in separate threads: NCCL waits there for the graphs that have
/// captured their collectives, which the rank's thread may be about to destroy.
class NcclEnds {
 public:
  using Handles = std::vector<std::shared_ptr<NcclHandle>>;

  /// @param device  of the communicators: a thread has device 0 first, and NCCL sets a thread's
  ///                device again before it returns, which would make a context there
  explicit NcclEnds(int device) : device_(device) {}
  NcclEnds(const NcclEnds&) = delete;  // owns threads
  NcclEnds& operator=(const NcclEnds&) = delete;
  /// Waits for the threads, but not forever: they use no member of this object.
  ~NcclEnds() {
    const auto deadline = deadline_after(seconds_to_end);
    for (Thread& one : threads_) {
      if (one.done.wait_until(deadline) == std::future_status::ready) one.thread.join();
      else one.thread.detach();
    }
  }

  /// Starts to abort all these given-up communicators together: an abort waits for the device, and
  /// so for the kernels of all other communicators.
  void abort(Handles handles) {
    run([handles = std::move(handles)] { abort_together(handles); });
  }
  /// Destroys a communicator unless it is being aborted; waits at most `timeout` seconds.
  void destroy(const std::shared_ptr<NcclHandle>& handle, double timeout) {
    if (!handle->give_up()) return;
    const auto done = run([handle] { handle->destroy(); });
    if (done.valid()) done.wait_until(deadline_after(std::min(timeout, seconds_to_end)));
  }

 private:
  struct Thread {
    std::shared_future<void> done;
    std::thread thread;
  };

  /// A call that is making a communicator is aborted as soon as NCCL has set the handle. If a call
  /// does not end, nothing is freed.
  static void abort_together(const Handles& handles) noexcept {
    const auto deadline = deadline_after(seconds_to_end);
    static_cast<void>(ncclGroupStart());
    for (;;) {
      bool used = false;
      for (const auto& handle : handles) used = handle->abort_in_group() || used;
      if (!used) break;
      if (std::chrono::steady_clock::now() > deadline) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    static_cast<void>(ncclGroupEnd());
  }

  /// @return ready when f has run; invalid if no thread was available: f has run then
  template <class F>
  std::shared_future<void> run(F f) {
    const std::lock_guard lock(mutex_);
    threads_.reserve(threads_.size() + 1);
    std::promise<void> promise;
    Thread next{promise.get_future().share(), {}};
    try {
      next.thread = std::thread(
          [f, device = device_](std::promise<void> done) {
            static_cast<void>(cudaSetDevice(device));
            f();
            done.set_value();
          },
          std::move(promise));
    } catch (const std::system_error&) {
      f();
      return {};
    }
    return threads_.emplace_back(std::move(next)).done;
  }

  int device_;
  std::mutex mutex_;
  std::vector<Thread> threads_;
};

}  // namespace cleave::inline v0::detail
