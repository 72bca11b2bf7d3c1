// The thread backend: the ranks are threads of one process, and read each other's tensors.
//
// The schedule of every call is one step: a rank publishes its calls, and reads those of its peers
// after an entry barrier (shared_memory/reads.hpp).
//
// Written once for all devices whose memory the ranks of a process can read: a device defines how
// elements are copied and reduced (`strided_copy`, `reduce_range`) and, if its work is
// asynchronous, what that work has to wait for (`PeerOrder`).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/schedule/run_schedule.hpp>
#include <cleave/comm/schedule/schedule_for.hpp>
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/comm/shared_memory/reads.hpp>
#include <cleave/comm/thread/thread_group.hpp>
#include <cleave/comm/thread/thread_world.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0 {

namespace detail {

/// A rank's seat in a thread world: the rank leaves when its last communicator is destroyed.
class ThreadSeat {
 public:
  ThreadSeat(std::shared_ptr<ThreadWorld> world, int rank)
      : world_(std::move(world)), rank_(rank) {}
  ThreadSeat(const ThreadSeat&) = delete;  // one per rank
  ThreadSeat& operator=(const ThreadSeat&) = delete;
  ~ThreadSeat() { world_->leave(rank_); }

 private:
  std::shared_ptr<ThreadWorld> world_;
  int rank_;
};

/// What a rank's device has to wait for after a barrier. On the host nothing: work is complete when
/// its call returns. @see DirectReads
template <class Device>
class PeerOrder {
 public:
  static constexpr const char* backend = "thread";
  /// Whether two threads of a rank may communicate, each over its own groups.
  static constexpr bool concurrent = true;
  static constexpr index_t short_bytes = block_bytes;

  /// This rank has reached a point.
  void mark(PeerPoint) {}
  /// Subsequent work runs after `peer` has reached the point.
  void await(const PeerOrder&, PeerPoint) {}
};

template <class Device>
class BasicThreadCommunicator final : public Communicator {
  using Order = PeerOrder<Device>;

 public:
  /// @param host  the same ranks for host memory; null if this communicator is for host memory
  BasicThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, std::string label,
                          std::shared_ptr<RankState> state, std::shared_ptr<ThreadSeat> seat,
                          std::shared_ptr<Communicator> host = nullptr)
      : Communicator(rank, group->size(), std::move(label), std::move(state)),
        group_(std::move(group)),
        seat_(std::move(seat)),
        host_(std::move(host)) {
    topology_.shares_memory = true;
  }

  const char* backend() const noexcept override { return Order::backend; }
  bool ranks_are_threads() const noexcept override { return true; }
  bool concurrent() const noexcept override { return Order::concurrent; }
  Communicator& host() noexcept override { return host_ == nullptr ? *this : *host_; }

  std::shared_ptr<Communicator> subgroup(std::span<const int> ranks, std::string label) override {
    const int place = place_in_subgroup(*this, ranks);
    std::shared_ptr<Communicator> host;
    if (host_ != nullptr) host = host_->subgroup(ranks, label);
    return std::make_shared<BasicThreadCommunicator>(enter_subgroup(ranks), place, std::move(label),
                                                     shared_state(), seat_, std::move(host));
  }

  /// The same ranks for the memory of another device.
  ///
  /// @return     a communicator that refers to this one, which must outlive it
  /// @collective every rank of the group
  template <class Other>
  std::shared_ptr<Communicator> on(Other) {
    std::shared_ptr<Communicator> self(std::shared_ptr<void>(), this);
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r) ranks.push_back(r);
    return std::make_shared<BasicThreadCommunicator<Other>>(enter_subgroup(ranks), rank(), label(),
                                                            shared_state(), seat_, std::move(self));
  }

  /// Runs the step of a schedule.
  void communicate(const ScheduleStep& step) {
    order_->mark(PeerPoint::ready);
    publish(step.calls);
    if (!std::ranges::all_of(step.calls, [](auto& c) { return c.kind == CollectiveKind::barrier; }))
      reads_.run(step.calls);
  }

 protected:
  void execute(std::span<const Collective> calls) override {
    if (calls.empty()) return;
    for (const Collective& c : calls) verify_call(c, rank(), size());
    run_schedule<Device>(schedule_for(calls, topology_), *this);
  }

  void gather_signatures(const Signature& mine, std::span<Signature> all) override {
    Published& call = group_->published(rank(), round_);
    call.compares = true;
    call.signature = mine;
    enter(name_of(CollectiveKind(mine.kind)), {}, mine.caller.data());
    for (int r = 0; r < size(); ++r) {
      const Published& theirs = group_->published(r, round_ - 1);
      if (!theirs.compares) disagree("compares its calls (CLEAVE_CHECK)", "does not", r);
      all[std::size_t(r)] = theirs.signature;
    }
  }

 private:
  friend DirectReads<Device, BasicThreadCommunicator>;

  static constexpr index_t short_bytes = Order::short_bytes;

  std::size_t calls_of(int r) const { return published(r).calls.size(); }
  const Collective& call_of(int r, std::size_t i) const {
    return size() == 1 ? alone_[i] : published(r).calls[i];
  }
  bool compares_transfers() const { return state().check == CheckLevel::collective; }

  void mark(PeerPoint point) { order_->mark(point); }
  void await(PeerPoint point) {
    for (int r = 0; r < size(); ++r)
      if (r != rank()) order_->await(*static_cast<const Order*>(published(r).order.get()), point);
  }
  void take_step() noexcept {
    if (size() > 1) group_->take_step(rank(), step_++);
  }
  void report(const char* error) noexcept {
    if (size() > 1) group_->report(rank(), round_ - 1, error);
  }
  void verify_no_failure(const Collective& c) const {
    if (size() == 1) return;
    if (RankFailure failure = group_->failure_after_entry(round_ - 1); failure.rank >= 0)
      throw PeerError(operation_of(c), std::move(failure), state().world_rank);
  }

  /// Publishes the calls, passes the entry barrier, and verifies that all ranks' calls agree: all
  /// ranks throw, or none.
  void publish(std::span<const Collective> calls) {
    alone_ = calls;
    if (size() == 1) return;
    Published& mine = group_->published(rank(), round_);
    mine.compares = false;
    mine.calls.assign(calls.begin(), calls.end());
    mine.error.clear();
    if (mine.order != order_) mine.order = order_;
    enter(operation_of(calls[0]), calls[0].site, "");
    for (int r = 0; r < size(); ++r)
      if (published(r).compares) disagree("does not compare its calls (CLEAVE_CHECK)", "does", r);
    if (const std::string text = reads_.disagreement(label()); !text.empty())
      throw Error(operation_of(calls[0]), text, {.rank = state().world_rank});
  }

  void enter(const char* operation, CallSite site, const char* caller) {
    group_->enter({{.world_rank = state().world_rank,
                    .operation = operation,
                    .label = &label(),
                    .site = site,
                    .caller = caller,
                    .timeout_seconds = state().timeout_seconds},
                   rank(),
                   round_});
    ++round_;
  }

  /// The record that a rank has published in the current round.
  const Published& published(int r) const { return group_->published(r, round_ - 1); }

  [[noreturn]] void disagree(const char* mine, const char* theirs, int r) const {
    throw Error("collective", disagreement_message(label(), rank(), mine, r, theirs),
                {.rank = state().world_rank});
  }

  /// A new group of the listed ranks of this group.
  std::shared_ptr<ThreadGroup> enter_subgroup(std::span<const int> ranks) {
    std::uint64_t occurrence = 0;
    for (const std::vector<int>& earlier : subgroups_)
      occurrence += std::equal(earlier.begin(), earlier.end(), ranks.begin(), ranks.end());
    subgroups_.emplace_back(ranks.begin(), ranks.end());
    return group_->subgroup(ranks, occurrence);
  }

  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<ThreadSeat> seat_;
  std::shared_ptr<Communicator> host_;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  Topology topology_{};
  DirectReads<Device, BasicThreadCommunicator> reads_{*this};
  std::span<const Collective> alone_{};      ///< the current calls: of a rank without peers
  std::vector<std::vector<int>> subgroups_;  ///< the lists of this rank's subgroups
  std::uint64_t round_ = 0;                  ///< of the entry barrier
  std::uint64_t step_ = 0;                   ///< of the steps after it
};

using ThreadCommunicator = BasicThreadCommunicator<Host>;

/// The communicators of all ranks of a new thread world. A template, like the public function:
/// compiled where a world is created, not wherever this file is included.
template <class Device>
std::vector<std::shared_ptr<Communicator>> thread_communicators(
    const std::shared_ptr<ThreadWorld>& world) {
  std::vector<int> members;
  for (int r = 0; r < world->size(); ++r) members.push_back(r);
  const auto group = std::make_shared<ThreadGroup>(world, members);
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (int r = 0; r < world->size(); ++r) {
    auto state = std::make_shared<RankState>(RankState::from_environment(r, world->size()));
    state->failures = world;
    state->local_rank = r;
    communicators.push_back(std::make_shared<BasicThreadCommunicator<Device>>(
        group, r, "world", std::move(state), std::make_shared<ThreadSeat>(world, r)));
  }
  return communicators;
}

}  // namespace detail

template <class Device>
  requires std::is_same_v<Device, Host>
std::vector<std::shared_ptr<Communicator>> thread_communicators(int ranks) {
  if (ranks < 1)
    throw Error("thread_communicators", std::to_string(ranks) + " ranks; there must be at least 1");
  return detail::thread_communicators<Device>(std::make_shared<detail::ThreadWorld>(ranks));
}

}  // namespace cleave::inline v0
