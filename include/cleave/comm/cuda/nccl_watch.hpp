// What keeps NCCL from hanging: a thread per rank that looks after the rank's communicators.
//
// NCCL has no time-outs, and a rank that dies leaves its peers' kernels spinning. The watch polls
// asynchronous errors, the ends of collectives and the news of other ranks; when one has failed, or
// none ends within CLEAVE_TIMEOUT, it aborts all communicators of the rank, which ends their
// kernels, and tells the other ranks. Whatever waits on the host, and every later call, then throws
// what has happened.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// How many collectives each rank of a group has begun, where the ranks share memory.
using NcclProgress = std::vector<std::atomic<std::uint64_t>>;

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

  /// Ends all its kernels. What is not ours is left to its owner.
  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    if (comm_ != nullptr && owned_) static_cast<void>(ncclCommAbort(comm_));
    comm_ = nullptr;
  }

  /// Ends it in peace, or, if that takes longer than `patience`, without.
  void close(std::chrono::duration<double> patience) noexcept {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr || !owned_) return;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    ncclResult_t status = ncclCommFinalize(comm_);
    while (status == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (ncclCommGetAsyncError(comm_, &status) != ncclSuccess) break;
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

/// A collective that has been enqueued, for messages.
struct NcclOperation {
  char name[48] = "";
  char group[48] = "";
  std::uint64_t number = 0;  ///< among those of its group, from 1
  std::shared_ptr<const NcclProgress> progress{};
  std::shared_ptr<const std::vector<int>> world_ranks{};

  /// "all_reduce of group 'tp'"
  std::string text() const {
    if (group[0] == '\0') return "a collective of it";  // of a graph
    return std::string(name) + " of group '" + group + "'";
  }

  /// The ranks that have not begun it, as far as that is known: " (rank 2 has not come to it)".
  std::string missing() const {
    if (progress == nullptr) return {};
    std::string list;
    int count = 0;
    for (std::size_t r = 0; r < progress->size(); ++r)
      if ((*progress)[r].load() < number) {
        list += (count++ > 0 ? ", " : "") + std::to_string((*world_ranks)[r]);
      }
    if (count == 0) return {};
    return count == 1 ? ": rank " + list + " has not come to it"
                      : ": ranks " + list + " have not come to it";
  }
};

class NcclWatch final : public cuda::Watch {
 public:
  explicit NcclWatch(const RankState& state)
      : alarm_(state.failures),
        rank_(state.world_rank),
        timeout_(state.timeout_seconds),
        device_(cuda::current_device()),
        thread_([this] { serve(); }) {}
  NcclWatch(const NcclWatch&) = delete;  // the rank has one
  NcclWatch& operator=(const NcclWatch&) = delete;
  ~NcclWatch() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    condition_.notify_one();
    thread_.join();
  }

  std::chrono::duration<double> timeout() const { return timeout_; }

  void enroll(const std::shared_ptr<NcclHandle>& handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
    if (!failure_.empty()) handle->abort();
  }
  void dismiss(const NcclHandle* handle) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < handles_.size(); ++i)
      if (handles_[i].get() == handle) handles_.erase(handles_.begin() + long(i--));
  }

  /// Before `operation` is enqueued: what fails from now on is named after it.
  void begins(const NcclOperation& operation) {
    const std::lock_guard lock(mutex_);
    std::copy(std::begin(operation.name), std::end(operation.name), begun_);
  }

  /// After `operation` has been enqueued on the current stream. Most calls only note its name; an
  /// event is recorded where none is under way.
  void enqueued(const NcclOperation& operation) {
    const cuda::Stream& stream = cuda::current_stream();
    const bool captured = cuda::capture_of(stream).has_value();
    const std::lock_guard lock(mutex_);
    if (captured) {  // it runs when the graph does
      graphs_ = true;
      return;
    }
    last_ = operation;
    if (!stream_ || !(*stream_ == stream)) stream_ = stream;
    ++enqueued_;
    if (!observing_) observe();
  }

  /// @throws Error if a rank has failed, or a collective did not end
  void verify() override {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(operation_, failure_, {.rank = rank_});
  }

  /// Looks after the launch like after a collective, if any has been captured.
  void launched() override {
    {
      const std::lock_guard lock(mutex_);
      if (!graphs_) return;
    }
    const NcclOperation launch{.name = "cuda::Graph::launch"};
    begins(launch);
    enqueued(launch);
  }

  /// Gives everything up: the first cause counts.
  void fail(const std::string& operation, const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      give_up(operation, text);
    }
    if (alarm_ != nullptr) alarm_->raise(rank_, (operation + ": " + text).c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto period = std::chrono::milliseconds(10);

  void serve() noexcept {
    static_cast<void>(cudaSetDevice(device_));
    std::unique_lock lock(mutex_);
    while (!ending_) {
      condition_.wait_for(lock, period);
      if (ending_ || !failure_.empty()) continue;
      try {
        look(lock);
      } catch (const std::exception& e) {
        give_up(operation(), e.what());
      }
    }
  }

  void look(std::unique_lock<std::mutex>& lock) {
    std::string text, heard;
    if (alarm_ != nullptr) {
      lock.unlock();  // it may have to wait for a message
      heard = alarm_->heard();
      lock.lock();
    }
    if (!heard.empty()) return give_up(operation(), heard);
    for (const auto& handle : handles_)
      handle->use([&](ncclComm_t comm) {
        ncclResult_t status = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(comm, &status);
        if (asked != ncclSuccess) status = asked;
        if (status != ncclSuccess && status != ncclInProgress)
          text = nccl_text(status, "an earlier call", comm);
      });
    if (text.empty()) text = look_at_end();
    if (text.empty()) return;
    const std::string what = operation();
    give_up(what, text);
    if (alarm_ == nullptr) return;
    lock.unlock();
    alarm_->raise(rank_, (what + ": " + text).c_str());
    lock.lock();
  }

  /// What is wrong with the collective under way; empty if nothing.
  std::string look_at_end() {
    if (!observing_) return {};
    const cudaError_t status = cudaEventQuery(end_.get());
    if (status == cudaErrorNotReady) {
      if (Clock::now() < deadline_) return {};
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%g", timeout_.count());
      return observed_.text() + " did not end within " + seconds + " s" + observed_.missing();
    }
    observing_ = false;
    if (status != cudaSuccess)
      return std::string("CUDA: ") + cudaGetErrorString(status) + ", during or before " +
             observed_.text();
    if (observed_count_ != enqueued_) observe();
    return {};
  }

  /// Puts a mark behind what is enqueued.
  void observe() {
    end_.record(*stream_);
    observed_ = last_;
    observed_count_ = enqueued_;
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout_);
    observing_ = true;
  }

  std::string operation() const { return begun_[0] != '\0' ? begun_ : "nccl"; }

  void give_up(const std::string& operation, const std::string& text) {
    if (!failure_.empty()) return;
    operation_ = operation;
    failure_ = text;
    for (const auto& handle : handles_) handle->abort();
  }

  std::shared_ptr<Alarm> alarm_;
  int rank_;
  std::chrono::duration<double> timeout_;
  int device_;

  std::mutex mutex_;
  std::condition_variable condition_;
  bool ending_ = false;
  std::vector<std::shared_ptr<NcclHandle>> handles_;
  char begun_[sizeof NcclOperation::name] = "";
  NcclOperation last_, observed_;
  std::uint64_t enqueued_ = 0, observed_count_ = 0;
  std::optional<cuda::Stream> stream_;
  cuda::Event end_;
  Clock::time_point deadline_{};
  bool observing_ = false;
  bool graphs_ = false;  ///< whether a graph has collectives
  std::string operation_, failure_;
  std::thread thread_;  ///< uses all of the above
};

}  // namespace cleave::detail
