// What keeps NCCL from hanging: a thread per rank that looks after the rank's communicators.
//
// NCCL has no time-outs, and a rank that dies leaves its peers' kernels spinning. The watch polls
// asynchronous errors, the ends of collectives and the news of other ranks; when one has failed, or
// one does not end within CLEAVE_TIMEOUT, it aborts all communicators of the rank together, which
// ends their kernels, and tells the other ranks. Whatever waits on the host, and every later call,
// then throws what has happened.
//
// The watch never touches the rank's streams, which may be captured or gone: the rank records
// events, the watch asks for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/capture_mode.hpp>
#include <cleave/comm/cuda/nccl_handle.hpp>
#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// How many collectives each rank of a group has begun, where the ranks share memory.
using NcclProgress = std::vector<std::atomic<std::uint64_t>>;

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
        aborts_(device_),
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

  /// Seconds that any wait may take.
  double timeout() const { return timeout_; }

  void enroll(const std::shared_ptr<NcclHandle>& handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
    if (!failure_.empty()) aborts_.begin({handle->give_up()});
  }
  void dismiss(const NcclHandle* handle) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < handles_.size(); ++i)
      if (handles_[i].get() == handle) handles_.erase(handles_.begin() + long(i--));
  }

  /// Aborts a communicator that never comes to be used.
  void discard(const std::shared_ptr<NcclHandle>& handle) {
    dismiss(handle.get());
    const std::lock_guard lock(mutex_);
    aborts_.begin({handle->give_up()});
  }
  /// Likewise one that NCCL may still be making; null if there is none.
  void discard(std::shared_ptr<ncclComm_t> made) {
    const std::lock_guard lock(mutex_);
    aborts_.begin_when_made(std::move(made));
  }

  /// Before `operation` is enqueued: what fails from now on is named after it.
  void begins(const NcclOperation& operation) {
    const std::lock_guard lock(mutex_);
    std::copy(std::begin(operation.name), std::end(operation.name), begun_);
  }

  /// After `operation` has been enqueued on the current stream: puts a mark behind it.
  void enqueued(const NcclOperation& operation) {
    const cuda::Stream& stream = cuda::current_stream();
    if (cuda::capture_of(stream)) {  // it runs when the graph does
      const std::lock_guard lock(mutex_);
      graphs_ = true;
      return;
    }
    Mark mark{operation, spare_event()};
    mark.end.record(stream);  // may wait for room in the stream: without the lock
    const std::lock_guard lock(mutex_);
    auto line = std::ranges::find(lines_, stream.get(), &Line::stream);
    if (line == lines_.end()) {
      Line& made = lines_.emplace_back(stream.get(), std::move(mark));
      made.deadline = deadline_after(timeout_);
      return;
    }
    if (line->latest) spare_.push_back(std::move(line->latest->end));
    line->latest = std::move(mark);
  }

  /// @throws Error if a rank has failed, or a collective did not end
  void verify() override {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(operation_, failure_, {.rank = rank_});
  }

  /// Whether everything has been given up.
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return !failure_.empty();
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

  /// The end of a collective.
  struct Mark {
    NcclOperation operation;
    cuda::Event end;
  };
  /// A stream with collectives that have not ended. The handle only tells it from others.
  struct Line {
    Line(cudaStream_t of, Mark first) : stream(of), under_way(std::move(first)) {}

    cudaStream_t stream;
    Mark under_way;
    std::optional<Mark> latest{};  ///< of those behind it
    Clock::time_point deadline{};  ///< of the one under way
  };

  void serve() noexcept {
    static_cast<void>(cudaSetDevice(device_));
    // what it asks for is no part of what other threads capture
    const CaptureMode mode(cudaStreamCaptureModeThreadLocal);
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
        const ncclResult_t status = state_of(comm);
        if (is_failure(status)) text = nccl_text(status, "an earlier call", comm);
      });
    if (text.empty()) text = look_at_ends();
    if (text.empty()) return;
    const std::string what = operation();
    give_up(what, text);
    if (alarm_ == nullptr) return;
    lock.unlock();
    alarm_->raise(rank_, (what + ": " + text).c_str());
    lock.lock();
  }

  /// What is wrong with a collective under way; empty if nothing. The time of one that has others
  /// before it in its stream begins when these have ended.
  std::string look_at_ends() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      Line& line = lines_[i];
      const NcclOperation& operation = line.under_way.operation;
      const cudaError_t status = cudaEventQuery(line.under_way.end.get());
      if (status == cudaErrorNotReady) {
        if (Clock::now() < line.deadline) continue;
        return operation.text() + " did not end" + within(timeout_) + operation.missing();
      }
      if (status != cudaSuccess)
        return std::string("CUDA: ") + cudaGetErrorString(status) + ", during or before " +
               operation.text();
      spare_.push_back(std::move(line.under_way.end));
      if (line.latest) {
        line.under_way = std::move(*line.latest);
        line.latest.reset();
        line.deadline = deadline_after(timeout_);
      } else {
        lines_.erase(lines_.begin() + long(i--));
      }
    }
    return {};
  }

  cuda::Event spare_event() {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        cuda::Event event = std::move(spare_.back());
        spare_.pop_back();
        return event;
      }
    }
    return {};
  }

  std::string operation() const { return begun_[0] != '\0' ? begun_ : "nccl"; }

  void give_up(const std::string& operation, const std::string& text) {
    if (!failure_.empty()) return;
    operation_ = operation;
    failure_ = text;
    std::vector<ncclComm_t> comms;
    for (const auto& handle : handles_) comms.push_back(handle->give_up());
    aborts_.begin(std::move(comms));
  }

  std::shared_ptr<Alarm> alarm_;
  int rank_;
  double timeout_;
  int device_;

  mutable std::mutex mutex_;
  std::condition_variable condition_;
  bool ending_ = false;
  std::vector<std::shared_ptr<NcclHandle>> handles_;
  char begun_[sizeof NcclOperation::name] = "";
  std::vector<Line> lines_;         ///< one of each stream at most
  std::vector<cuda::Event> spare_;  ///< to be used again
  bool graphs_ = false;             ///< whether a graph has collectives
  std::string operation_, failure_;
  NcclAborts aborts_;
  std::thread thread_;  ///< uses all of the above
};

}  // namespace cleave::detail
