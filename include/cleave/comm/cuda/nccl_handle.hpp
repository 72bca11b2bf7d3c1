// NCCL's communicators as their rank holds them, and as another thread may abort them.
#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/cuda/capture_mode.hpp>
#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/core/deadline.hpp>

namespace cleave::detail {

/// Seconds, at the most, that the end of something may wait for work that might never end.
inline constexpr double patience_of_ends = 10;

/// A communicator of NCCL that the rank's thread uses and the watch may abort.
class NcclHandle {
 public:
  NcclHandle(ncclComm_t comm, bool owned) : comm_(comm), owned_(owned) {}
  NcclHandle(const NcclHandle&) = delete;  // one owner destroys it
  NcclHandle& operator=(const NcclHandle&) = delete;

  /// Calls f(comm) while nobody aborts it; false if somebody has.
  template <class F>
  bool use(F f) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return false;
    f(comm_);
    return true;
  }

  /// For the user's own calls; null after a failure.
  ncclComm_t get() const {
    const std::lock_guard lock(mutex_);
    return comm_;
  }

  /// Nobody uses it from now on.
  /// @return what is to be aborted; null if it is not ours, or has been given up before
  ncclComm_t give_up() noexcept {
    const std::lock_guard lock(mutex_);
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    return owned_ ? comm : nullptr;
  }

  /// Ends it in peace, or, if that takes too long, without.
  /// @param timeout  seconds that any wait may take
  void close(double timeout) noexcept {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr || !owned_) return;
    const auto deadline = deadline_after(std::min(timeout, patience_of_ends));
    ncclResult_t status = ncclCommFinalize(comm_);
    while (status == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      status = state_of(comm_);
    }
    if (status == ncclSuccess) static_cast<void>(ncclCommDestroy(comm_));
    else static_cast<void>(ncclCommAbort(comm_));
    comm_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  ncclComm_t comm_;
  bool owned_;
};

/// Aborts communicators in threads of its own. An abort frees memory, which waits for the device
/// and with it for the kernels of all other communicators: those that are given up together are
/// aborted together. It also waits for the graphs that have collectives of the communicator, so
/// that whoever has these must not wait for it.
class NcclAborts {
 public:
  explicit NcclAborts(int device) : device_(device) {}
  NcclAborts(const NcclAborts&) = delete;  // owns threads
  NcclAborts& operator=(const NcclAborts&) = delete;
  /// Waits for the aborts, but not for ever: the threads use nothing of this.
  ~NcclAborts() {
    const auto deadline = deadline_after(patience_of_ends);
    for (Thread& one : threads_) {
      if (one.done.wait_until(deadline) == std::future_status::ready) one.thread.join();
      else one.thread.detach();
    }
  }

  /// Begins to abort all of these at once. Waits for no abort before, which may wait for this one.
  void begin(std::vector<ncclComm_t> comms) {
    std::erase(comms, nullptr);
    if (!comms.empty()) run([comms = std::move(comms)] { abort_together(comms); });
  }
  /// Likewise a communicator that NCCL may still be making out of another one, which has been given
  /// up before: NCCL says here when it is made.
  void begin_when_made(std::shared_ptr<ncclComm_t> made) {
    std::vector<std::shared_future<void>> before;
    for (const Thread& one : threads_) before.push_back(one.done);
    run([made = std::move(made), before = std::move(before)] {
      for (const auto& done : before) done.wait();
      if (*made != nullptr) abort_together({*made});
    });
  }

 private:
  struct Thread {
    std::shared_future<void> done;
    std::thread thread;
  };

  static void abort_together(const std::vector<ncclComm_t>& comms) {
    static_cast<void>(ncclGroupStart());
    for (const ncclComm_t comm : comms) static_cast<void>(ncclCommAbort(comm));
    static_cast<void>(ncclGroupEnd());
  }

  template <class Abort>
  void run(Abort abort) {
    threads_.reserve(threads_.size() + 1);
    std::promise<void> promise;
    Thread next{promise.get_future().share(), {}};
    try {
      next.thread = std::thread(
          [device = device_, abort](std::promise<void> done) {
            static_cast<void>(cudaSetDevice(device));
            const CaptureMode mode(cudaStreamCaptureModeThreadLocal);  // others' are not disturbed
            abort();
            done.set_value();
          },
          std::move(promise));
    } catch (const std::system_error&) {  // no thread to be had
      return abort();
    }
    threads_.push_back(std::move(next));
  }

  int device_;
  std::vector<Thread> threads_;
};

}  // namespace cleave::detail
