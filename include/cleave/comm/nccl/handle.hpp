// NCCL's communicators as their rank uses them, and as another thread may abort them.
//
// They are blocking: a call may last until a peer has made its own. NCCL wants nobody to be inside
// of a call on a communicator that is freed; an abort therefore raises the flags that end kernels
// and calls first, and frees what is there only when everybody has left.
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

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// Seconds, at the most, that the end of something may wait for work that might never end.
inline constexpr double patience_of_ends = 10;

/// Asks for an event until it has come or the time is over; does not throw.
/// @param stop  () -> bool: whether to give up before
/// @return whether it has come, or has failed
template <class Stop>
bool wait_quietly(cudaEvent_t event, std::chrono::steady_clock::time_point deadline, Stop stop) {
  const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is of no capture
  while (cuda::detail::not_ready(cudaEventQuery(event))) {
    if (std::chrono::steady_clock::now() > deadline || stop()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// A communicator of NCCL that the rank's threads use and the failure detector may abort.
class NcclHandle {
 public:
  /// One that is to be made.
  NcclHandle() = default;
  /// The user's, who ends it.
  explicit NcclHandle(ncclComm_t theirs) : comm_(theirs), owned_(false), made_(true) {}
  NcclHandle(const NcclHandle&) = delete;  // one owner destroys it
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// Calls f(comm), which may last as long as it takes a peer to come; does nothing if the
  /// communicator has been given up, or is not made.
  template <class F>
  void use(F f) {
    if (!enter()) return;
    f(comm_);
    leave();
  }
  /// Calls f(ncclComm_t*), which has NCCL make the communicator. @return what it says
  template <class F>
  ncclResult_t make(F f) {
    {
      const std::lock_guard lock(mutex_);
      if (given_up_) return ncclInvalidUsage;
      ++users_;
    }
    const ncclResult_t status = f(&comm_);
    const std::lock_guard lock(mutex_);
    --users_;
    made_ = status == ncclSuccess && comm_ != nullptr;
    return status;
  }

  /// For the user's own calls; null after a failure.
  ncclComm_t get() const {
    const std::lock_guard lock(mutex_);
    return given_up_ ? nullptr : comm_;
  }

  /// Nobody begins to use it from now on. @return whether that is new
  bool give_up() noexcept {
    const std::lock_guard lock(mutex_);
    return !std::exchange(given_up_, true);
  }

  /// Within a group of NCCL: aborts it, unless it is not there yet, not ours, or aborted before.
  /// @pre given up; called by one thread
  /// @return whether somebody is still inside of a call
  bool abort_in_group() noexcept {
    const bool used = in_use();  // who has left changes nothing any more
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
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (given_up_ || !made_) return false;
    ++users_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --users_;
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

/// Ends communicators, each in a thread of its own: NCCL waits there for the graphs that have their
/// collectives, which the rank's thread may be about to destroy.
class NcclEnds {
 public:
  using Handles = std::vector<std::shared_ptr<NcclHandle>>;

  NcclEnds() = default;
  NcclEnds(const NcclEnds&) = delete;  // owns threads
  NcclEnds& operator=(const NcclEnds&) = delete;
  /// Waits for the ends, but not for ever: the threads use nothing of this.
  ~NcclEnds() {
    const auto deadline = deadline_after(patience_of_ends);
    for (Thread& one : threads_) {
      if (one.done.wait_until(deadline) == std::future_status::ready) one.thread.join();
      else one.thread.detach();
    }
  }

  /// Begins to abort all of these, which have been given up, at once: an abort waits for the device
  /// and with it for the kernels of all other communicators.
  void abort(Handles handles) {
    run([handles = std::move(handles)] { abort_together(handles); });
  }
  /// Destroys a communicator unless it is being aborted. Waits for that as long as an end may take.
  void destroy(const std::shared_ptr<NcclHandle>& handle, double timeout) {
    if (!handle->give_up()) return;
    const auto done = run([handle] { handle->destroy(); });
    if (done.valid()) done.wait_until(deadline_after(std::min(timeout, patience_of_ends)));
  }

 private:
  struct Thread {
    std::shared_future<void> done;
    std::thread thread;
  };

  /// Calls that have begun to make a communicator are ended as soon as there is something to abort.
  /// A call that does not end keeps everything: freeing is left out.
  static void abort_together(const Handles& handles) noexcept {
    const auto deadline = deadline_after(patience_of_ends);
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

  /// @return what tells when f has run; invalid if there was no thread to be had: it has
  template <class F>
  std::shared_future<void> run(F f) {
    const std::lock_guard lock(mutex_);
    threads_.reserve(threads_.size() + 1);
    std::promise<void> promise;
    Thread next{promise.get_future().share(), {}};
    try {
      next.thread = std::thread(
          [f](std::promise<void> done) {
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

  std::mutex mutex_;
  std::vector<Thread> threads_;
};

}  // namespace cleave::detail
