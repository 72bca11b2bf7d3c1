// The NCCL backend, one rank per GPU: collectives are lowered to NCCL calls, which are enqueued on
// the current stream. The host does not wait.
//
// NCCL communicators are blocking: the first calls wait until the ranks have connected, unless the
// rank's failure detector aborts them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/comm/nccl/lowering.hpp>
#include <cleave/comm/nccl/nccl_failure_detector.hpp>
#include <cleave/comm/nccl/rank.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/comm/schedule/run_schedule.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0::detail {

class NcclCommunicator final : public Communicator {
 public:
  /// Connects the GPUs of a group's ranks, one GPU per rank.
  ///
  /// @param host  the same ranks; must outlive the result if the pointer does not own it
  /// @collective  every rank of the group
  /// @throws Error if NCCL cannot connect them, e.g. because two ranks use one GPU
  static std::shared_ptr<NcclCommunicator> create(std::shared_ptr<Communicator> host) {
    const std::shared_ptr<NcclRank> rank = NcclRank::of(host->state());
    const std::shared_ptr<NcclHandle> made = connect_by_nccl(*rank, *host);
    return wrap(made, std::move(host));
  }

  /// Wraps a communicator that the user continues to own. @see create
  /// @pre `host` has the same ranks in the same order
  static std::shared_ptr<NcclCommunicator> adopt(ncclComm_t comm,
                                                 std::shared_ptr<Communicator> host) {
    const std::shared_ptr<NcclRank> of_rank = NcclRank::of(host->state());
    int rank = -1, size = 0;
    if (ncclCommUserRank(comm, &rank) != ncclSuccess || ncclCommCount(comm, &size) != ncclSuccess ||
        rank != host->rank() || size != host->size())
      throw Error("nccl",
                  "the communicator has rank " + std::to_string(rank) + " of " +
                      std::to_string(size) + ", but its group has rank " +
                      std::to_string(host->rank()) + " of " + std::to_string(host->size()),
                  {.rank = host->state().world_rank});
    const auto handle = std::make_shared<NcclHandle>(comm);
    of_rank->detector->enroll(handle);
    return wrap(handle, std::move(host));
  }

  /// Waits for its enqueued work unless a rank fails: afterwards NCCL no longer uses the memory.
  ~NcclCommunicator() override {
    const bool ended =
        !enqueued_ || wait_quietly(end_.get(), deadline_after(rank_->detector->timeout()),
                                   [&] { return rank_->detector->failed(); });
    if (!ended) rank_->detector->discard(handle_);
    rank_->detector->close(handle_);
  }

  const char* backend() const noexcept override { return "nccl"; }
  Communicator& host() noexcept override { return *host_; }
  bool splits_early() const noexcept override { return true; }

  /// For the user's own calls, ordered among this rank's other ones; null after a failure.
  ncclComm_t handle() const { return handle_->get(); }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    if (int(ranks.size()) == size()) return split(ranks, std::move(label));
    return create(host_->subgroup(ranks, std::move(label)));
  }

  std::shared_ptr<Communicator> split(std::span<const int> ranks, std::string label) override {
    // on the host, which detects a rank that makes a different call
    const Collective meeting = Collective{}.named("ncclCommSplit");
    agree_on_call(meeting);
    pass_on(*host_, {&meeting, 1});
    if (enqueued_) {  // a split while operations of the parent are under way may deadlock
      const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // the event is not part of a capture
      end_.synchronize();
    }
    std::shared_ptr<Communicator> host = host_->split(ranks, std::move(label));
    const int color = *std::min_element(ranks.begin(), ranks.end());
    const int key = place_in_subgroup(*this, ranks);
    const auto made = make_nccl(*rank_, "ncclCommSplit", [&](ncclComm_t* to) {
      ncclResult_t status = ncclInvalidUsage;  // if the communicator is given up
      handle_->use([&](ncclComm_t comm) { status = ncclCommSplit(comm, color, key, to, nullptr); });
      return status;
    });
    return wrap(made, std::move(host));
  }

 protected:
  void execute(std::span<const Collective> calls) override {
    if (calls.empty()) return;
    rank_->detector->verify();
    for (const Collective& c : calls) verify_call(c, rank(), size());
    std::vector<std::shared_ptr<void>> temporaries;  // released when all is enqueued
    std::vector<NcclPlan> plans;
    for (const Collective& c : calls) {
      if (c.kind == CollectiveKind::barrier) pass_on(*host_, {&c, 1});
      plans.push_back(NcclLowering(c, rank(), size(), rank_->version, [&](std::size_t bytes) {
                        return temporaries.emplace_back(allocate_bytes(Cuda{}, bytes)).get();
                      }).take());
    }
    enqueue(plans, calls[0]);
    if (const cuda::Stream& stream = cuda::current_stream(); !cuda::capture_of(stream)) {
      end_.record(stream);
      enqueued_ = true;
    }
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*host_, mine, all);
  }

 private:
  NcclCommunicator(std::shared_ptr<NcclHandle> handle, std::shared_ptr<Communicator> host)
      : Communicator(host->rank(), host->size(), host->label(), host->shared_state()),
        host_(std::move(host)),
        rank_(NcclRank::of(state())),
        handle_(std::move(handle)) {
    share_progress();
  }

  static std::shared_ptr<NcclCommunicator> wrap(const std::shared_ptr<NcclHandle>& handle,
                                                std::shared_ptr<Communicator> host) {
    const auto detector = NcclRank::of(host->state())->detector;
    try {
      return std::shared_ptr<NcclCommunicator>(new NcclCommunicator(handle, std::move(host)));
    } catch (...) {
      detector->discard(handle);
      throw;
    }
  }

  /// Shares progress among ranks of one process: errors then name the ranks that are missing.
  void share_progress() {
    ranks_ = std::make_shared<std::vector<int>>(
        gather_values(*host_, state().world_rank, "nccl", Unobserved::run));
    if (!host_->ranks_are_threads()) return;
    std::shared_ptr<NcclProgress> shared;
    if (rank() == 0) shared = std::make_shared<NcclProgress>(std::size_t(size()));
    auto address = reinterpret_cast<std::uintptr_t>(&shared);
    Unobserved::run(*host_, broadcast_call(bytes_of(address), "nccl"));
    progress_ = *reinterpret_cast<const std::shared_ptr<NcclProgress>*>(address);
    // a barrier: `shared` of the first rank is in use until here
    Unobserved::run(*host_, Collective{}.named("nccl"));
  }

  /// Calls f(comm); the first call of a kind waits until all ranks have connected.
  template <class F>
  void call(const char* function, F f) {
    ncclResult_t status = ncclSuccess;
    std::string text;
    rank_->detector->during_call([&] {
      handle_->use([&](ncclComm_t comm) {
        status = f(comm);
        if (status != ncclSuccess) text = nccl_error_string(status, function, comm);
      });
    });
    if (!text.empty()) rank_->detector->fail(text);
    rank_->detector->verify();
  }

  void enqueue(std::span<const NcclPlan> plans, const Collective& first) {
    for (const NcclPlan& plan : plans)
      for (const ScheduleStep& step : plan.before) run_locally<Cuda>(step);
    begin(first);
    issue(plans);
    for (const NcclPlan& plan : plans)
      for (const ScheduleStep& step : plan.after) run_locally<Cuda>(step);
    rank_->detector->enqueued(operation_);
  }

  /// Tells the failure detector, for its messages, which collective is about to be enqueued.
  void begin(const Collective& first) {
    operation_.set_name(operation_of(first));
    std::strncpy(operation_.label, label().c_str(), sizeof operation_.label - 1);
    operation_.progress = progress_;
    operation_.world_ranks = ranks_;
    ++operation_.number;
    if (progress_ != nullptr) (*progress_)[std::size_t(rank())].store(operation_.number);
    rank_->detector->begins(operation_);
  }

  /// Issues one call alone, several as an NCCL group.
  void issue(std::span<const NcclPlan> plans) {
    std::vector<NcclCall> calls;
    for (const NcclPlan& plan : plans)
      calls.insert(calls.end(), plan.calls.begin(), plan.calls.end());
    if (calls.empty()) return;
    const cudaStream_t stream = cuda::current_stream().get();
    if (calls.size() == 1)
      return call(name_of(calls[0].function),
                  [&](ncclComm_t comm) { return start(calls[0], comm, stream); });
    call("ncclGroupEnd", [&](ncclComm_t comm) {
      ncclResult_t status = ncclGroupStart();
      for (const NcclCall& c : calls)
        if (const ncclResult_t next = start(c, comm, stream); next != ncclSuccess) status = next;
      const ncclResult_t ended = ncclGroupEnd();
      return status != ncclSuccess ? status : ended;
    });
  }

  static ncclResult_t start(const NcclCall& c, ncclComm_t comm, cudaStream_t stream) {
    switch (c.function) {
      case NcclFunction::all_reduce:
        return ncclAllReduce(c.send, c.receive, c.count, c.type, c.op, comm, stream);
      case NcclFunction::reduce_scatter:
        return ncclReduceScatter(c.send, c.receive, c.count, c.type, c.op, comm, stream);
      case NcclFunction::all_gather:
        return ncclAllGather(c.send, c.receive, c.count, c.type, comm, stream);
      case NcclFunction::broadcast:
        return ncclBroadcast(c.send, c.receive, c.count, c.type, c.peer, comm, stream);
      case NcclFunction::all_to_all:
        return ncclAlltoAll(c.send, c.receive, c.count, c.type, comm, stream);
      case NcclFunction::gather:
        return ncclGather(c.send, c.receive, c.count, c.type, c.peer, comm, stream);
      case NcclFunction::scatter:
        return ncclScatter(c.send, c.receive, c.count, c.type, c.peer, comm, stream);
      case NcclFunction::send: return ncclSend(c.send, c.count, c.type, c.peer, comm, stream);
      case NcclFunction::receive: return ncclRecv(c.receive, c.count, c.type, c.peer, comm, stream);
    }
    return ncclInvalidArgument;
  }

  std::shared_ptr<Communicator> host_;
  std::shared_ptr<NcclRank> rank_;
  std::shared_ptr<NcclHandle> handle_;
  std::shared_ptr<std::vector<int>> ranks_;
  std::shared_ptr<NcclProgress> progress_;
  NcclOperation operation_;
  cuda::Event end_;  ///< of the last enqueued work
  bool enqueued_ = false;
};

}  // namespace cleave::inline v0::detail
