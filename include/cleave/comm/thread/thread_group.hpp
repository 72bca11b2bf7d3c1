// The state that the threads of one group share: their published calls, and two barriers.
//
// A collective has an entry barrier and, after it, steps. Waiting at the entry barrier ends early
// if a rank fails, leaves or does not arrive in time; no rank has read a peer's memory by then.
// After the entry barrier every rank takes every step, even if it fails, so that no rank returns,
// and frees its tensors, while a peer may still read them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/comm/thread/thread_world.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/core/deadline.hpp>

namespace cleave::inline v0::detail {

/// Published by a rank for its peers: collectives that run together, or the signature of one.
struct Published {
  bool compares = false;  ///< `signature` is valid, and no steps follow the entry barrier
  Signature signature{};
  std::vector<Collective> calls{};
  std::string error{};  ///< why the rank failed after the entry barrier
  /// The rank's PeerOrder: peers may need it after the rank has left.
  std::shared_ptr<const void> order{};
};

/// A rank's visit to the entry barrier.
struct Visit : RankWait {
  int rank = 0;             ///< in the group
  std::uint64_t round = 0;  ///< of the barrier
};

/// Constrained to one type: compiled where ranks are started, not wherever this file is included.
template <std::same_as<ThreadWorld> World>
class BasicThreadGroup {
 public:
  /// @param members  the ranks of the world, in the order of the group
  BasicThreadGroup(std::shared_ptr<World> world, std::vector<int> members)
      : world_(std::move(world)),
        members_(std::move(members)),
        entry_barrier_(int(members_.size())),
        step_barrier_(int(members_.size())),
        slots_(std::make_unique<Slot[]>(members_.size())) {}

  int size() const noexcept { return int(members_.size()); }
  const std::vector<int>& members() const noexcept { return members_; }
  const std::shared_ptr<World>& world() const noexcept { return world_; }

  /// The record that `rank` publishes in a round of the entry barrier. Two rounds are kept: a rank
  /// that has finished may publish its next call while peers still read this one, but then waits
  /// for them.
  Published& published(int rank, std::uint64_t round) noexcept {
    return slots_[std::size_t(rank)].published[round & 1];
  }

  /// Returns when all ranks have arrived at the entry barrier.
  /// @throws Error if a rank has failed or left, or does not arrive in time
  void enter(const Visit& visit) {
    StatusBoard& board = world_->board();
    board.verify(visit.operation, visit.world_rank);
    slots_[std::size_t(visit.rank)].visits.store(visit.round + 1, std::memory_order_release);
    const CancellableBarrier::Arrival arrival = entry_barrier_.arrive(visit.round);
    if (arrival == CancellableBarrier::Arrival::opened) return wake_others(visit.rank);
    if (arrival == CancellableBarrier::Arrival::closed) stop_for_failure(visit);
    if (spin(entry_barrier_, visit.round)) return;
    const StatusBoard::Wait stated(board, visit.world_rank, visit.place());
    Parker& parker = world_->parker(visit.world_rank);
    const auto begin = Clock::now();
    for (double limit = visit.timeout_seconds;; limit = 0.05) {
      const std::uint64_t seen = world_->abort_epoch();
      const double waited = Seconds(Clock::now() - begin).count();
      std::string reason;
      if (seen != 0 || waited > visit.timeout_seconds)
        reason = reason_to_stop(visit, waited, board.missing_peers(members_, [&](int r) {
          return slots_[std::size_t(r)].visits.load() <= visit.round;
        }));
      const bool lost = !reason.empty() || board.has_failed();
      if (entry_barrier_.open(visit.round)) return;
      if (lost) {
        const Error error(visit.operation, reason, {.rank = visit.world_rank});
        if (entry_barrier_.close(visit.round)) give_up(visit, reason, error);
      }
      if (waited < visit.timeout_seconds) limit = visit.timeout_seconds - waited;
      parker.sleep_until(deadline_after(limit), [&] {
        return entry_barrier_.open(visit.round) || world_->abort_epoch() != seen;
      });
    }
  }

  /// Returns when all ranks have reached this step after the entry barrier; all of them do.
  void take_step(int rank, std::uint64_t round) noexcept {
    if (step_barrier_.arrive(round) == CancellableBarrier::Arrival::opened)
      return wake_others(rank);
    if (spin(step_barrier_, round)) return;
    world_->parker(world_rank(rank)).sleep([&] { return step_barrier_.open(round); });
  }

  /// Records, before a step, that `rank` failed after the entry barrier of `round`.
  void report(int rank, std::uint64_t round, const char* error) noexcept {
    published(rank, round).error = error;
    spoiled_[round & 1].store(round + 1);
  }

  /// After a step: the first rank that failed after the entry barrier, if any.
  RankFailure failure_after_entry(std::uint64_t round) {
    if (spoiled_[round & 1].load() != round + 1) return {};
    for (int r = 0; r < size(); ++r)
      if (const std::string& error = published(r, round).error; !error.empty())
        return {world_rank(r), error};
    return {};
  }

  /// The group of these ranks (of this group) number `occurrence`, counted from 0.
  std::shared_ptr<BasicThreadGroup> subgroup(std::span<const int> ranks, std::uint64_t occurrence) {
    const std::lock_guard lock(mutex_);
    std::vector<int> members;
    for (const int r : ranks) members.push_back(world_rank(r));
    std::size_t i = 0;
    while (i < awaited_.size() &&
           (awaited_[i].occurrence != occurrence || awaited_[i].group->members() != members))
      ++i;
    if (i == awaited_.size())
      awaited_.push_back({std::make_shared<BasicThreadGroup>(world_, members), occurrence, 0});
    const std::shared_ptr<BasicThreadGroup> group = awaited_[i].group;
    if (++awaited_[i].entered == group->size()) awaited_.erase(awaited_.begin() + long(i));
    return group;
  }

 private:
  struct alignas(64) Slot {
    std::array<Published, 2> published{};
    alignas(64) std::atomic<std::uint64_t> visits{0};  ///< rounds in which it has arrived
  };

  /// A subgroup that not all of its ranks have entered yet.
  struct Awaited {
    std::shared_ptr<BasicThreadGroup> group;
    std::uint64_t occurrence;
    int entered;
  };

  int world_rank(int rank) const { return members_[std::size_t(rank)]; }

  /// Polls for about as long as a wake-up takes, so that a wait takes at most twice the minimum
  /// even if other programs need the cores.
  bool spin(const CancellableBarrier& barrier, std::uint64_t round) const noexcept {
    if (barrier.open(round) || !world_->spins()) return barrier.open(round);
    const auto end = Clock::now() + std::chrono::microseconds(10);
    do {
      for (int i = 0; i < 16; ++i) {
        if (barrier.open(round)) return true;
        spin_pause();
      }
    } while (Clock::now() < end);
    return barrier.open(round);
  }

  void wake_others(int rank) noexcept {
    for (int r = 0; r < size(); ++r)
      if (r != rank) world_->parker(world_rank(r)).wake();
  }

  /// After the entry barrier was closed: throws the reason of the rank that failed first.
  void give_up(const Visit& visit, const std::string& reason, const Error& error) {
    if (!reason.empty() && world_->fail(visit.world_rank, error.what())) throw error;
    stop_for_failure(visit);
  }

  /// Throws the first failure; a rank that has closed a barrier is about to report one.
  void stop_for_failure(const Visit& visit) const {
    while (!world_->board().has_failed()) std::this_thread::yield();
    world_->board().verify(visit.operation, visit.world_rank);
  }

  std::shared_ptr<World> world_;
  std::vector<int> members_;
  CancellableBarrier entry_barrier_;
  CancellableBarrier step_barrier_;
  std::unique_ptr<Slot[]> slots_;
  std::array<std::atomic<std::uint64_t>, 2> spoiled_{};  ///< rounds + 1 in which a rank failed
  std::mutex mutex_;
  std::vector<Awaited> awaited_;
};

using ThreadGroup = BasicThreadGroup<ThreadWorld>;

}  // namespace cleave::inline v0::detail
