// The thread backend: the ranks are threads of one process, and read each other's tensors.
//
// Every rank publishes its calls; after an entry barrier, ranks copy or reduce directly from their
// peers' memory, and synchronise again before any source may change. Nothing is packed; reductions
// combine in rank order. An error on one rank after the entry barrier fails the call on all ranks
// of the group. Calls that run together share the entry barrier and the steps after it.
//
// Written once for all devices whose memory the ranks of a process can read: a device defines how
// elements are copied and reduced (`strided_copy`, `reduce_range`) and, if its work is
// asynchronous, what that work has to wait for (`PeerOrder`).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/shared_memory/reads.hpp>
#include <cleave/comm/thread/communicators.hpp>
#include <cleave/comm/thread/thread_group.hpp>
#include <cleave/comm/thread/thread_world.hpp>
#include <cleave/comm/verify.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave {

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

/// The points of a collective that ranks wait for.
enum class PeerPoint : std::uint8_t {
  ready,    ///< sources may be read
  reduced,  ///< the shares of an all_reduce may be read, too
  done,     ///< no peer reads any more
};

/// What a rank's device has to wait for after a barrier. On the host nothing: work is complete when
/// its call returns.
template <class Device>
class PeerOrder {
 public:
  static constexpr const char* backend = "thread";
  /// Whether two threads of a rank may communicate, each over its own groups.
  static constexpr bool concurrent = true;
  /// An all_reduce of more bytes is worth one more step: each rank reduces a share and copies the
  /// shares of the others. In a shorter one, each rank reduces everything.
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
        host_(std::move(host)),
        peers_(std::size_t(size())) {
    operands_.reserve(peers_.size());
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

 protected:
  void execute(const Collective& collective) override { execute_all({&collective, 1}); }

  void execute_all(std::span<const Collective> calls) override {
    if (calls.empty()) return;
    for (const Collective& c : calls) verify_call(c, rank(), size());
    const bool in_shares = std::any_of(calls.begin(), calls.end(), is_long_all_reduce);
    const std::shared_ptr<void> results = in_shares ? nullptr : scratch_for_results(calls);
    order_->mark(PeerPoint::ready);
    publish(calls);
    if (std::all_of(calls.begin(), calls.end(), is_barrier)) return;

    std::exception_ptr error;
    attempt(error, [&] {
      await_peers(PeerPoint::ready);
      std::size_t offset = 0;
      for_calls(calls, [&](const Collective& c, PeerCalls peers) {
        if (c.kind == CollectiveKind::reduce_scatter)
          reduce_piece<Device>(peers, rank(), operands_);
        else if (c.kind != CollectiveKind::all_reduce)
          copy_from_peers<Device>(peers, rank(), state().check == CheckLevel::collective);
        else if (in_shares) reduce_share<Device>(peers, rank(), operands_);
        else
          reduce_elements<Device>(peers, result_of(c, results, offset), 0, c.source.size(),
                                  operands_);
      });
    });
    if (in_shares) {
      attempt(error, [&] { order_->mark(PeerPoint::reduced); });
      take_step();
      attempt(error, [&] {
        await_peers(PeerPoint::reduced);
        for_calls(calls, [&](const Collective& c, PeerCalls peers) {
          if (c.kind == CollectiveKind::all_reduce) copy_shares<Device>(peers, rank());
        });
      });
    }
    // Whatever failed, peers have enqueued work that reads this rank's memory, and it theirs.
    std::exception_ptr unordered;
    attempt(unordered, [&] { order_->mark(PeerPoint::done); });
    take_step();
    attempt(unordered, [&] { await_peers(PeerPoint::done); });
    finish(calls[0], error != nullptr ? error : unordered);
    if (in_shares) return;
    std::size_t offset = 0;
    for (const Collective& c : calls)
      if (c.kind == CollectiveKind::all_reduce)
        strided_copy(Device{}, result_of(c, results, offset), c.destination);
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
  static bool is_barrier(const Collective& c) { return c.kind == CollectiveKind::barrier; }

  /// An all_reduce that is reduced in shares. Its result has the same bits either way.
  static bool is_long_all_reduce(const Collective& c) {
    return c.kind == CollectiveKind::all_reduce && c.source.bytes() > Order::short_bytes;
  }

  /// Memory for the results of short all_reduces, whose destinations may be sources that peers
  /// read. On the host it is kept for later calls; on a device it is freed with the call, in stream
  /// order, because the next call may be on another stream, or captured.
  std::shared_ptr<void> scratch_for_results(std::span<const Collective> calls) {
    std::size_t bytes = 0;
    for (const Collective& c : calls)
      if (c.kind == CollectiveKind::all_reduce) bytes += result_bytes(c);
    if constexpr (std::is_same_v<Device, Host>) {
      if (bytes > results_bytes_) results_ = allocate_bytes(Device{}, bytes);
      results_bytes_ = std::max(results_bytes_, bytes);
      return results_;
    } else {
      return allocate_bytes(Device{}, bytes);
    }
  }

  static std::size_t result_bytes(const Collective& c) {
    return (std::size_t(c.source.bytes()) + 63) / 64 * 64;
  }

  /// The next result, `offset` bytes after the first.
  static View result_of(const Collective& c, const std::shared_ptr<void>& results,
                        std::size_t& offset) {
    const View result = View::dense(static_cast<std::byte*>(results.get()) + offset, c.source.dtype,
                                    c.source.extents);
    offset += result_bytes(c);
    return result;
  }

  /// Calls visit(call, the same call of all ranks) for each call.
  template <class Visitor>
  void for_calls(std::span<const Collective> calls, Visitor visit) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (int r = 0; r < size(); ++r)
        peers_[std::size_t(r)] = size() == 1 ? &calls[i] : &published(r).calls[i];
      visit(calls[i], PeerCalls(peers_));
    }
  }

  /// Publishes the calls, passes the entry barrier, and verifies that all ranks' calls agree.
  void publish(std::span<const Collective> calls) {
    if (size() == 1) return;
    Published& mine = group_->published(rank(), round_);
    mine.compares = false;
    mine.calls.assign(calls.begin(), calls.end());
    mine.error.clear();
    if (mine.order != order_) mine.order = order_;
    enter(operation_of(calls[0]), calls[0].site, "");
    verify_peers(calls[0]);
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

  /// Every rank compares the same calls and reaches the same result: all throw, or none.
  void verify_peers(const Collective& mine) const {
    const std::vector<Collective>& first = published(0).calls;
    for (int r = 0; r < size(); ++r) {
      const std::vector<Collective>& theirs = published(r).calls;
      if (published(r).compares) disagree("does not compare its calls (CLEAVE_CHECK)", "does", r);
      const std::size_t common = std::min(first.size(), theirs.size());
      std::size_t i = 0;
      while (i < common && agree(first[i], theirs[i])) ++i;
      if (i == first.size() && i == theirs.size()) continue;
      const auto what = [&](const std::vector<Collective>& calls) {
        return "runs " + (i < calls.size() ? text_of(calls[i]) : "nothing more");
      };
      throw Error(operation_of(mine),
                  text_of_disagreement(label(), 0, what(first), r, what(theirs)),
                  {.rank = state().world_rank});
    }
  }

  [[noreturn]] void disagree(const char* mine, const char* theirs, int r) const {
    throw Error("collective", text_of_disagreement(label(), rank(), mine, r, theirs),
                {.rank = state().world_rank});
  }

  /// Subsequent work of this rank's device runs after all ranks have reached the point.
  void await_peers(PeerPoint point) {
    if (size() == 1) return;
    for (int r = 0; r < size(); ++r)
      if (r != rank()) order_->await(*static_cast<const Order*>(published(r).order.get()), point);
  }

  /// A new group of the listed ranks of this group.
  std::shared_ptr<ThreadGroup> enter_subgroup(std::span<const int> ranks) {
    std::uint64_t occurrence = 0;
    for (const std::vector<int>& earlier : subgroups_)
      occurrence += std::equal(earlier.begin(), earlier.end(), ranks.begin(), ranks.end());
    subgroups_.emplace_back(ranks.begin(), ranks.end());
    return group_->subgroup(ranks, occurrence);
  }

  /// Runs work after the entry barrier, unless earlier work failed. Keeps its exception until no
  /// peer reads this rank's memory.
  template <class Work>
  void attempt(std::exception_ptr& error, Work work) noexcept {
    if (error != nullptr) return;
    try {
      work();
    } catch (const std::exception& e) {
      error = std::current_exception();
      if (size() > 1) group_->report(rank(), round_ - 1, e.what());
    }
  }

  void take_step() noexcept {
    if (size() > 1) group_->take_step(rank(), step_++);
  }

  /// After the last step: throws an error that occurred after the entry barrier, here or on a peer.
  void finish(const Collective& c, const std::exception_ptr& error) {
    if (error != nullptr) std::rethrow_exception(error);
    if (size() == 1) return;
    if (RankFailure failure = group_->failure_after_entry(round_ - 1); failure.rank >= 0)
      throw PeerError(operation_of(c), std::move(failure), state().world_rank);
  }

  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<ThreadSeat> seat_;
  std::shared_ptr<Communicator> host_;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  std::vector<const Collective*> peers_;     ///< of the current call
  std::vector<ConstView> operands_;          ///< of a reduction
  std::shared_ptr<void> results_;            ///< of short all_reduces, on the host
  std::size_t results_bytes_ = 0;            ///< of `results_`
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
    state->abort_notification = world;
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

}  // namespace cleave
