// The failure detector for NCCL: two threads per rank that keep its communicators from hanging.
//
// NCCL has no time-outs, and a rank that dies leaves its peers' kernels and calls waiting. When a
// rank has failed, or a collective or a call does not end within CLEAVE_TIMEOUT, the failure
// detector notifies the other ranks and aborts all communicators of the rank together, which ends
// their kernels and calls. Waits on the host and later calls then throw the cause.
//
// One thread queries CUDA and NCCL for ended collectives and asynchronous errors. The other thread
// decides, by the host's clock and by abort notifications; it makes no CUDA call, and no thread
// holds the lock during one: a busy driver delays query results, not the decision. Neither thread
// uses the rank's streams, which may be captured or destroyed: the rank records events.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/nccl/nccl_handle.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/comm/rank_status.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::detail {

/// How many collectives each rank of a group has begun, where the ranks share memory.
using NcclProgress = std::vector<std::atomic<std::uint64_t>>;

/// An enqueued collective, for error messages.
struct NcclOperation {
  char name[48] = "";
  char label[48] = "";       ///< of its group
  std::uint64_t number = 0;  ///< counts the collectives of its group, from 1
  std::shared_ptr<const NcclProgress> progress{};
  std::shared_ptr<const std::vector<int>> world_ranks{};

  void set_name(const char* text) { std::strncpy(name, text, sizeof name - 1); }

  /// "all_reduce of group 'tp'"
  std::string to_string() const {
    if (label[0] == '\0') return number == 0 ? "a collective of the graph" : name;  // of a graph
    return std::string(name) + " of group '" + label + "'";
  }

  /// The error text if it has not ended in time.
  std::string overdue(double timeout) const {
    const std::string operation = label[0] == '\0' ? to_string() : name, of_group = label;
    const RankWait wait{.operation = operation.c_str(),
                        .label = label[0] == '\0' ? nullptr : &of_group,
                        .timeout_seconds = timeout};
    std::vector<PeerStatus> peers;
    for (std::size_t r = 0; progress != nullptr && r < progress->size(); ++r)
      peers.push_back(
          {(*world_ranks)[r], {RankStatus::State::computes, (*progress)[r].load() >= number, {}}});
    std::ranges::sort(peers, {}, &PeerStatus::rank);
    const std::string reason = reason_to_stop(wait, std::numeric_limits<double>::infinity(), peers);
    const bool reached = !peers.empty() &&
                         std::ranges::all_of(peers, [](auto& peer) { return peer.status.reached; });
    return !reached ? reason
                    : reason +
                          "; threads with one GPU each may block each other in the driver; "
                          "start one process per GPU";
  }
};

class NcclFailureDetector final : public cuda::FailureDetector {
 public:
  explicit NcclFailureDetector(const RankState& state)
      : failures_(state.failures),
        rank_(state.world_rank),
        timeout_(state.timeout_seconds),
        device_(cuda::current_device()),
        deciding_([this] { decide(); }),
        asking_([this] { ask(); }) {}
  NcclFailureDetector(const NcclFailureDetector&) = delete;  // one per rank
  NcclFailureDetector& operator=(const NcclFailureDetector&) = delete;
  ~NcclFailureDetector() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    condition_.notify_all();
    deciding_.join();
    asking_.join();
  }

  /// The limit of any wait, in seconds.
  double timeout() const { return timeout_; }

  void enroll(const std::shared_ptr<NcclHandle>& handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
    if (!failure_.empty()) handle->give_up();
  }
  /// Destroys an unused communicator; does not wait if there are graphs, for which NCCL waits.
  void close(const std::shared_ptr<NcclHandle>& handle) {
    dismiss(handle);
    ends_.destroy(handle, has_graphs() ? 0 : timeout_);
  }
  /// Aborts a communicator that will not be used.
  void discard(const std::shared_ptr<NcclHandle>& handle) {
    dismiss(handle);
    if (handle->give_up()) ends_.abort({handle});
  }

  /// Called before `operation` is enqueued: later failures are reported under its name.
  void begins(const NcclOperation& operation) {
    const std::lock_guard lock(mutex_);
    begun_ = operation;
  }

  /// Runs f, which may wait inside NCCL, under the time-out of a collective.
  template <class F>
  void during_call(F f) {
    set_deadline_of_call(deadline_after(timeout_));
    f();
    set_deadline_of_call(std::nullopt);
  }

  /// Called after `operation` is enqueued on the current stream: records an event behind it.
  void enqueued(const NcclOperation& operation) {
    const cuda::Stream& stream = cuda::current_stream();
    if (cuda::capture_of(stream)) {  // it runs when the graph is launched
      const std::lock_guard lock(mutex_);
      graphs_ = true;
      return;
    }
    Mark mark{operation, spare_event()};
    mark.end.record(stream);  // without the lock: may wait for room in the stream
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

  /// Whether there was a failure: all communicators are given up then.
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return !failure_.empty();
  }

  /// Treats a graph launch as a collective if any collective has been captured.
  void launched() override {
    if (!has_graphs()) return;
    const NcclOperation launch{.name = "cuda::Graph::launch"};
    begins(launch);
    enqueued(launch);
  }

  /// Gives up all communicators and notifies the other ranks; only the first cause counts.
  void fail(const std::string& text) { give_up(text, true); }

 private:
  static constexpr auto period = std::chrono::milliseconds(10);

  /// An event at the end of a collective.
  struct Mark {
    NcclOperation operation;
    cuda::Event end;
  };
  /// A stream with unfinished collectives. Its handle is only a key.
  struct Line {
    Line(cudaStream_t of, Mark first) : stream(of), under_way(std::move(first)) {}

    cudaStream_t stream;
    Mark under_way;
    std::optional<Mark> latest{};  ///< the last one behind it
    Clock::time_point deadline{};  ///< of `under_way`
  };

  void dismiss(const std::shared_ptr<NcclHandle>& handle) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(handles_, handle);
  }

  bool has_graphs() const {
    const std::lock_guard lock(mutex_);
    return graphs_;
  }

  void set_deadline_of_call(std::optional<Clock::time_point> deadline) {
    const std::lock_guard lock(mutex_);
    deadline_of_call_ = deadline;
  }

  /// Sleeps for a period. @return whether to continue
  bool wait_a_period() {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, period, [this] { return ending_; });
    return !ending_;
  }

  /// The deciding thread, which makes no CUDA call.
  void decide() noexcept {
    while (wait_a_period()) {
      if (failed()) continue;
      const std::string heard = failures_ != nullptr ? failures_->heard() : std::string();
      if (!heard.empty()) give_up(heard, false);
      else if (const std::string text = overdue(); !text.empty()) fail(text);
    }
  }

  /// The error text of an operation that did not end in time; empty if there is none. The time of a
  /// collective starts when those before it in its stream are known to have ended.
  std::string overdue() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (deadline_of_call_ && *deadline_of_call_ < now) return begun_.overdue(timeout_);
    for (const Line& line : lines_)
      if (line.deadline < now) return line.under_way.operation.overdue(timeout_);
    return {};
  }

  /// The querying thread, whose calls may block.
  void ask() noexcept {
    static_cast<void>(cudaSetDevice(device_));
    // its queries are not part of captures by other threads
    const CaptureMode mode(cudaStreamCaptureModeThreadLocal);
    while (wait_a_period()) {
      if (failed()) continue;
      std::string text;
      for (const auto& handle : all_handles())
        handle->use([&](ncclComm_t comm) {
          const ncclResult_t status = state_of(comm);
          if (status != ncclSuccess) text = nccl_error_string(status, "an earlier call", comm);
        });
      if (text.empty()) text = ask_for_ends();
      if (!text.empty()) fail(text);
    }
  }

  NcclEnds::Handles all_handles() const {
    const std::lock_guard lock(mutex_);
    return handles_;
  }

  /// The error of a collective under way; empty if there is none. Only this thread removes marks.
  std::string ask_for_ends() {
    for (std::size_t i = 0;;) {
      cudaEvent_t end = nullptr;
      {
        const std::lock_guard lock(mutex_);
        if (i == lines_.size()) return {};
        end = lines_[i].under_way.end.get();
      }
      const cudaError_t status = cudaEventQuery(end);
      const std::lock_guard lock(mutex_);
      if (status == cudaErrorNotReady) {
        ++i;
      } else if (status != cudaSuccess) {
        return std::string("CUDA: ") + cudaGetErrorString(status) + ", during or before " +
               lines_[i].under_way.operation.to_string();
      } else if (!next_mark(lines_[i])) {
        lines_.erase(lines_.begin() + long(i));
      }
    }
  }

  /// Replaces the ended collective by the next one. @return whether there is one
  bool next_mark(Line& line) {
    spare_.push_back(std::move(line.under_way.end));
    if (!line.latest) return false;
    line.under_way = std::move(*line.latest);
    line.latest.reset();
    line.deadline = deadline_after(timeout_);
    return true;
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

  /// Notifies the other ranks before any CUDA call.
  void give_up(const std::string& text, bool tell) {
    NcclEnds::Handles handles;
    std::string operation;
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) return;
      operation_ = operation = begun_.name[0] != '\0' ? begun_.name : "nccl";
      failure_ = text;
      for (const auto& handle : handles_)
        if (handle->give_up()) handles.push_back(handle);
    }
    if (tell && failures_ != nullptr) failures_->raise(rank_, (operation + ": " + text).c_str());
    if (!handles.empty()) ends_.abort(std::move(handles));
  }

  std::shared_ptr<AbortNotification> failures_;
  int rank_;
  double timeout_;
  int device_;

  mutable std::mutex mutex_;  ///< of all below; never held during a CUDA or NCCL call
  std::condition_variable condition_;
  bool ending_ = false;
  NcclEnds::Handles handles_;
  NcclOperation begun_;
  std::optional<Clock::time_point> deadline_of_call_;  ///< of the rank's NCCL call
  std::vector<Line> lines_;                            ///< at most one per stream
  std::vector<cuda::Event> spare_;                     ///< for reuse
  bool graphs_ = false;                                ///< whether a graph has captured collectives
  std::string operation_, failure_;
  NcclEnds ends_{device_};
  std::thread deciding_, asking_;  ///< use all of the above
};

}  // namespace cleave::inline v0::detail
