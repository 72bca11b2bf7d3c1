// The state that the threads of one group share: their published calls, and two barriers.
//
// A collective has an entry barrier and, after it, steps. Waiting at the entry barrier ends early
// if a rank fails, leaves or does not arrive in time; no rank has read a peer's memory by then.
// After the entry barrier every rank takes every step, even if it fails, so that no rank returns,
// and frees its tensors, while a peer may still read them.
#pragma once

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
#include <cleave/comm/thread/world.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/core/deadline.hpp>

namespace cleave::detail {

/// Published by a rank for its peers: collectives that run together, or the signature of one.
struct Published {
  bool compares = false;  ///< `signature` is valid, and no steps follow the entry barrier
  Signature signature{};
  std::vector<Collective> calls{};
  std::string error{};  ///< why the rank failed after the entry barrier
  /// The rank's PeerOrder: peers may need it after the rank has left.
  std::shared_ptr<const void> order{};
};

/// A rank's visit to the entry barrier, with names for errors.
struct Visit {
  int rank = 0;             ///< in the group
  std::uint64_t round = 0;  ///< of the barrier
  const char* operation = "";
  const std::string* label = nullptr;
  double timeout_seconds = 0;
  CallSite site{};          ///< of the call, if known
  const char* caller = "";  ///< or what it is for. @see Signature::caller

  /// "barrier of group 'world'"
  std::string where() const { return std::string(operation) + " of group '" + *label + "'"; }
  /// The same with the place of the call: " at heat.cpp:41".
  std::string place() const {
    return where() + (*caller != '\0' ? text_of_caller(caller) : to_string(site));
  }
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
    if (world_->abort_epoch() != 0) stop_for_failure(visit);
    slots_[std::size_t(visit.rank)].visits.store(visit.round + 1, std::memory_order_release);
    const CancellableBarrier::Arrival arrival = entry_barrier_.arrive(visit.round);
    if (arrival == CancellableBarrier::Arrival::opened) return wake_others(visit.rank);
    if (arrival == CancellableBarrier::Arrival::closed) follow(visit);
    if (spin(entry_barrier_, visit.round)) return;
    const typename World::Wait wait(
        *world_, world_rank(visit.rank),
        [](const void* its) { return static_cast<const Visit*>(its)->place(); }, &visit);
    Parker& parker = world_->parker(world_rank(visit.rank));
    const auto deadline = deadline_after(visit.timeout_seconds);
    for (bool late = false;;) {
      const std::uint64_t seen = world_->abort_epoch();
      const bool lost = late || world_->failure().rank >= 0 || !missing(visit, true).empty();
      if (entry_barrier_.open(visit.round)) return;
      if (lost && entry_barrier_.close(visit.round)) give_up(visit, late);
      late = !parker.sleep_until(deadline, [&] {
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

  /// "2" or "1, 3": world ranks that have not arrived at the entry barrier; with `left`, only those
  /// that have left.
  std::string missing(const Visit& visit, bool left) const {
    std::string list;
    for (int r = 0; r < size(); ++r) {
      if (left && !world_->has_left(world_rank(r))) continue;
      if (slots_[std::size_t(r)].visits.load() > visit.round) continue;
      list += (list.empty() ? "" : ", ") + std::to_string(world_rank(r));
    }
    return list;
  }

  void stop_for_failure(const Visit& visit) const {
    if (RankFailure failure = world_->failure(); failure.rank >= 0)
      throw PeerError(visit.operation, std::move(failure), world_rank(visit.rank));
  }

  /// Throws the reason why the entry barrier stays closed: that of the rank that gave up first.
  [[noreturn]] void give_up(const Visit& visit, bool late) {
    if (explaining_.exchange(true)) follow(visit);
    struct Explained {
      ~Explained() { flag.store(true); }
      std::atomic<bool>& flag;
    } const explained{explained_};
    stop_for_failure(visit);
    if (!late) stop_for_leaving(visit);
    std::string text = text_of_leaving(visit);
    if (text.empty()) {
      const std::string absent = missing(visit, false);
      text = (absent.empty() ? "another rank" : ranks_named(absent)) + " did not reach " +
             visit.place() + within(visit.timeout_seconds) + elsewhere(visit);
    }
    const Error error(visit.operation, text, {.rank = world_rank(visit.rank)});
    world_->fail({world_rank(visit.rank), error.what()});
    throw error;
  }

  /// Waits until the rank that gave up first has reported its reason, and throws that reason.
  [[noreturn]] void follow(const Visit& visit) const {
    while (!explained_.load() && world_->failure().rank < 0) std::this_thread::yield();
    stop_for_failure(visit);
    stop_for_leaving(visit);
  }

  /// For an entry barrier that is closed without a failure.
  [[noreturn]] void stop_for_leaving(const Visit& visit) const {
    std::string text = text_of_leaving(visit);
    if (text.empty()) text = "another rank has given up waiting in " + visit.where();
    throw Error(visit.operation, text, {.rank = world_rank(visit.rank)});
  }

  /// "rank 2 left while rank 0 waits in barrier of group 'world'"; empty if none has left.
  std::string text_of_leaving(const Visit& visit) const {
    std::string gone = missing(visit, true);
    if (gone.empty()) return gone;
    return ranks_named(gone) + " left while rank " + std::to_string(world_rank(visit.rank)) +
           " waits in " + visit.where();
  }

  /// "; rank 2 waits in all_reduce of group 'tp'": where missing ranks of this world wait.
  std::string elsewhere(const Visit& visit) const {
    std::string text;
    for (int r = 0; r < size(); ++r) {
      if (slots_[std::size_t(r)].visits.load() > visit.round) continue;
      const std::string place = world_->wait_of(world_rank(r));
      if (!place.empty()) text += "; rank " + std::to_string(world_rank(r)) + " waits in " + place;
    }
    return text;
  }

  static std::string ranks_named(const std::string& list) {
    return (list.find(',') == std::string::npos ? "rank " : "ranks ") + list;
  }

  std::shared_ptr<World> world_;
  std::vector<int> members_;
  CancellableBarrier entry_barrier_;
  CancellableBarrier step_barrier_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<bool> explaining_{false};                  ///< a rank has given up and reports why
  std::atomic<bool> explained_{false};                   ///< that rank has reported
  std::array<std::atomic<std::uint64_t>, 2> spoiled_{};  ///< rounds + 1 in which a rank failed
  std::mutex mutex_;
  std::vector<Awaited> awaited_;
};

using ThreadGroup = BasicThreadGroup<ThreadWorld>;

}  // namespace cleave::detail
