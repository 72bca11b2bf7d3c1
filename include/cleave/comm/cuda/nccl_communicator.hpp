// One rank per GPU: every collective is the calls of NCCL that its lowering says, enqueued on the
// current stream. Nothing waits on the host.
//
// Communicators do not block: calls that are under way are polled, so that the watch can end them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/capture_mode.hpp>
#include <cleave/comm/cuda/nccl_arena.hpp>
#include <cleave/comm/cuda/nccl_lowering.hpp>
#include <cleave/comm/cuda/nccl_rank.hpp>
#include <cleave/comm/cuda/nccl_watch.hpp>
#include <cleave/comm/cuda/unobserved.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/kernels/cuda/reduce_views.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>

namespace cleave::detail {

class NcclCommunicator final : public Communicator {
 public:
  /// The GPUs of a group's ranks, one each.
  ///
  /// @param host  the same ranks; outlives this one if it is not held by the pointer
  /// @collective  every rank of the group
  /// @throws Error if NCCL cannot connect them: two ranks on one GPU, among others
  static std::shared_ptr<NcclCommunicator> create(std::shared_ptr<Communicator> host) {
    verify_nccl_version();
    const std::shared_ptr<NcclRank> rank = NcclRank::of(host->state());
    const ncclComm_t made = connect_by_nccl(*rank, *host);
    return wrap(made, true, std::move(host));
  }

  /// The user's communicator, which stays the user's. @see create
  /// @pre `host` has the same ranks in the same order
  static std::shared_ptr<NcclCommunicator> adopt(ncclComm_t comm,
                                                 std::shared_ptr<Communicator> host) {
    int rank = -1, size = 0;
    if (ncclCommUserRank(comm, &rank) != ncclSuccess || ncclCommCount(comm, &size) != ncclSuccess ||
        rank != host->rank() || size != host->size())
      throw Error("nccl",
                  "the communicator has rank " + std::to_string(rank) + " of " +
                      std::to_string(size) + ", the group that it is to serve rank " +
                      std::to_string(host->rank()) + " of " + std::to_string(host->size()),
                  {.rank = host->state().world_rank});
    return wrap(comm, false, std::move(host));
  }

  /// Waits for what it has enqueued, as long as nothing fails: the memory is not NCCL's after it.
  ~NcclCommunicator() override {
    if (enqueued_ && !rank_->watch->failed())
      wait_quietly(end_.get(), deadline_after(rank_->watch->timeout()),
                   [&] { return rank_->watch->failed(); });
    rank_->arena->dismiss(handle_.get());
    rank_->watch->dismiss(handle_.get());
    handle_->close(rank_->watch->timeout());
  }

  const char* backend() const noexcept override { return "nccl"; }
  Communicator& host() noexcept override { return *host_; }
  bool splits_early() const noexcept override { return true; }

  /// For the user's own calls, in the order of this rank's others; null after a failure.
  ncclComm_t handle() const { return handle_->get(); }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    if (int(ranks.size()) == size()) return split(ranks, std::move(label));
    return create(host_->subgroup(ranks, std::move(label)));
  }

  std::shared_ptr<Communicator> split(std::span<const int> ranks, std::string label) override {
    Collective meeting;  // on the host: a rank that does something else is found there, not here
    meeting.operation = "ncclCommSplit";
    agree_on_call(meeting);
    pass_on(*host_, {&meeting, 1});
    doing_ = meeting.operation;
    std::shared_ptr<Communicator> host = host_->split(ranks, std::move(label));
    const int color = *std::min_element(ranks.begin(), ranks.end());
    const int key = place_in_subgroup(*this, ranks);
    ncclConfig_t config = nccl_config();
    const ncclComm_t made = make_nccl(*rank_, "ncclCommSplit", [&](ncclComm_t* to) {
      call("ncclCommSplit",
           [&](ncclComm_t comm) { return ncclCommSplit(comm, color, key, to, &config); });
      return ncclSuccess;
    });
    return wrap(made, true, std::move(host));
  }

 protected:
  void execute(const Collective& collective) override { execute_all({&collective, 1}); }

  void execute_all(std::span<const Collective> calls) override {
    if (calls.empty()) return;
    rank_->watch->verify();
    for (const Collective& c : calls) verify_call(c, rank(), size());
    staging_.begin();
    std::vector<NcclPlan> plans;
    for (const Collective& c : calls) {
      if (c.kind == CollectiveKind::barrier) pass_on(*host_, {&c, 1});
      plans.push_back(NcclLowering(c, rank(), size(), [&](std::size_t bytes) {
                        return staging_.take(bytes);
                      }).take());
    }
    enqueue(plans, calls[0]);
    staging_.end();
    if (const cuda::Stream& stream = cuda::current_stream(); !cuda::capture_of(stream)) {
      end_.record(stream);
      enqueued_ = true;
    }
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    pass_on(*host_, mine, all);
  }

 private:
  /// Distances between ranks whose sends and receives are one group: NCCL takes about 2048.
  static constexpr int distances_per_group = 512;

  NcclCommunicator(std::shared_ptr<NcclHandle> handle, std::shared_ptr<Communicator> host)
      : Communicator(host->rank(), host->size(), host->label(), host->shared_state()),
        host_(std::move(host)),
        rank_(NcclRank::of(state())),
        handle_(std::move(handle)),
        staging_(rank_->arena) {
    share_progress();
    rank_->watch->enroll(handle_);
    rank_->arena->enroll(handle_);
  }

  static std::shared_ptr<NcclCommunicator> wrap(ncclComm_t comm, bool owned,
                                                std::shared_ptr<Communicator> host) {
    const std::shared_ptr<NcclWatch> watch = NcclRank::of(host->state())->watch;
    const auto handle = std::make_shared<NcclHandle>(comm, owned);
    try {
      return std::shared_ptr<NcclCommunicator>(new NcclCommunicator(handle, std::move(host)));
    } catch (...) {
      watch->discard(handle);
      throw;
    }
  }

  /// Ranks of one process see how far the others are: they name who does not come.
  void share_progress() {
    const auto ranks = said_by_all(*host_, state().world_rank, "nccl");
    ranks_ = std::make_shared<std::vector<int>>(ranks.begin(), ranks.end());
    if (std::strcmp(host_->backend(), "thread") != 0) return;
    std::shared_ptr<NcclProgress> shared;
    if (rank() == 0) shared = std::make_shared<NcclProgress>(std::size_t(size()));
    auto address = reinterpret_cast<std::uintptr_t>(&shared);
    said_by_first(*host_, &address, sizeof address, "nccl");
    progress_ = *reinterpret_cast<const std::shared_ptr<NcclProgress>*>(address);
    Collective all_here;  // the first rank's variable is needed until now
    all_here.operation = "nccl";
    run_unobserved(*host_, all_here);
  }

  /// Calls f(comm), and waits until NCCL has taken it.
  template <class F>
  void call(const char* function, F f) {
    ncclResult_t status = ncclSuccess;
    std::string text;
    const auto ask = [&](auto asked) {
      return handle_->use([&](ncclComm_t comm) {
        status = asked(comm);
        if (is_failure(status)) text = nccl_text(status, function, comm);
      });
    };
    bool polling = ask(f);
    const auto deadline = deadline_after(rank_->watch->timeout());
    while (polling && status == ncclInProgress) {
      polling = ask(state_of);
      if (std::chrono::steady_clock::now() > deadline)
        text = std::string("NCCL: ") + function + " did not end" + within(rank_->watch->timeout());
      if (!text.empty()) break;
    }
    if (!text.empty()) rank_->watch->fail(doing_, text);
    rank_->watch->verify();
  }

  void enqueue(std::span<const NcclPlan> plans, const Collective& first) {
    for (const NcclPlan& plan : plans)
      for (const NcclCopy& copy : plan.packs) strided_copy(Cuda{}, copy.from, copy.to);
    begin(first);
    issue(plans);
    for (const NcclPlan& plan : plans) {
      for (const NcclCopy& copy : plan.unpacks) strided_copy(Cuda{}, copy.from, copy.to);
      for (const NcclReduction& reduction : plan.reductions)
        reduce_range(Cuda{}, reduction.op, reduction.operands, reduction.result, 0,
                     reduction.result.size());
    }
    rank_->watch->enqueued(operation_);
  }

  /// Notes, for messages, what is about to be enqueued, and tells the watch.
  void begin(const Collective& first) {
    const auto note = [](char(&to)[48], const char* text) {
      std::strncpy(to, text, sizeof to - 1);
    };
    doing_ = operation_of(first);
    note(operation_.name, doing_);
    note(operation_.group, label().c_str());
    operation_.progress = progress_;
    operation_.world_ranks = ranks_;
    ++operation_.number;
    if (progress_ != nullptr) (*progress_)[std::size_t(rank())].store(operation_.number);
    rank_->watch->begins(operation_);
  }

  /// One call goes alone, several as one group; sends and receives between ranks that are far from
  /// each other as groups of their own.
  void issue(std::span<const NcclPlan> plans) {
    std::size_t count = 0;
    bool far = false;
    for (const NcclPlan& plan : plans)
      for (const NcclCall& c : plan.calls) ++count, far = far || distance(c) > distances_per_group;
    if (count == 0) return;
    const cudaStream_t stream = cuda::current_stream().get();
    if (count == 1) {
      for (const NcclPlan& plan : plans)
        for (const NcclCall& c : plan.calls)
          call(name_of(c.function), [&](ncclComm_t comm) { return start(c, comm, stream); });
      return;
    }
    const int groups = far ? (size() - 1 + distances_per_group - 1) / distances_per_group : 1;
    for (int g = 0; g < groups; ++g)
      call("ncclGroupEnd", [&](ncclComm_t comm) {
        ncclResult_t status = ncclGroupStart();
        for (const NcclPlan& plan : plans)
          for (const NcclCall& c : plan.calls) {
            if (std::max(0, distance(c) - 1) / distances_per_group != g) continue;
            const ncclResult_t next = start(c, comm, stream);
            if (is_failure(next)) status = next;
          }
        const ncclResult_t ended = ncclGroupEnd();
        return is_failure(status) ? status : ended;
      });
  }

  /// How far the peer of a send or receive is, in the direction of the transfer; 0 for other calls.
  int distance(const NcclCall& c) const {
    if (c.function == NcclFunction::send) return (c.peer - rank() + size()) % size();
    if (c.function == NcclFunction::receive) return (rank() - c.peer + size()) % size();
    return 0;
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
  const char* doing_ = "nccl";  ///< what the call at hand is for
  NcclStaging staging_;
  cuda::Event end_;  ///< of what was enqueued last
  bool enqueued_ = false;
};

}  // namespace cleave::detail
