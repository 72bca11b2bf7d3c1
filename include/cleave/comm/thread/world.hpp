// The state shared by all ranks of a thread world: failures, departures, and where each rank
// sleeps.
//
// Abort notifications (a failure, a departure) wake every sleeping rank, whatever group it waits
// in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/thread/cancellable_barrier.hpp>
#include <cleave/core/cores.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

/// The rank that failed first, and the cause.
struct RankFailure {
  int rank = -1;  ///< in the world; -1: none failed
  std::string cause{};
};

/// Thrown by the other ranks when one has failed.
class PeerError : public Error {
 public:
  PeerError(std::string operation, RankFailure failure, int rank)
      : Error(std::move(operation),
              "rank " + std::to_string(failure.rank) + " failed: " + failure.cause, {.rank = rank}),
        failure_(std::move(failure)) {}

  const RankFailure& failure() const noexcept { return failure_; }

 private:
  RankFailure failure_;
};

class ThreadWorld final : public AbortNotification {
 public:
  class Wait;

 private:
  struct Seat {
    Parker parker{};
    std::atomic<bool> left{false};
    std::mutex mutex{};     ///< guards the list
    Wait* waits = nullptr;  ///< of the rank's threads
  };

 public:
  explicit ThreadWorld(int size)
      : size_(size),
        spins_(size <= available_cores()),
        seats_(std::make_unique<Seat[]>(std::size_t(size))) {}

  int size() const noexcept { return size_; }

  /// Whether a waiting rank spins for a while before it sleeps: not if ranks outnumber the cores.
  bool spins() const noexcept { return spins_; }

  Parker& parker(int rank) noexcept { return seat(rank).parker; }

  /// Records that `failure.rank` failed, unless another rank failed before, and wakes all ranks.
  void fail(RankFailure failure) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.rank < 0) failure_ = std::move(failure);
    }
    announce();
  }

  void raise(int rank, const char* cause) noexcept override { fail({rank, cause}); }

  std::string heard() noexcept override {
    if (abort_epoch() == 0) return {};
    const RankFailure first = failure();
    if (first.rank < 0) return {};
    return "rank " + std::to_string(first.rank) + " failed: " + first.cause;
  }

  /// Records that a rank has left, and wakes all ranks.
  void leave(int rank) noexcept {
    if (!seat(rank).left.exchange(true)) announce();
  }

  bool has_left(int rank) const noexcept { return seats_[std::size_t(rank)].left.load(); }

  /// What a rank waits for, while it exists: for the errors of other ranks.
  class Wait {
   public:
    /// @param text   makes the text of `visit`, on another thread
    Wait(ThreadWorld& world, int rank, std::string (*text)(const void* visit), const void* visit)
        : text_(text), visit_(visit), seat_(world.seat(rank)) {
      const std::lock_guard lock(seat_.mutex);
      next_ = std::exchange(seat_.waits, this);
    }
    Wait(const Wait&) = delete;  // listed where it is
    Wait& operator=(const Wait&) = delete;
    ~Wait() {
      const std::lock_guard lock(seat_.mutex);
      Wait** place = &seat_.waits;  // the rank's worker thread may wait, too
      while (*place != this) place = &(*place)->next_;
      *place = next_;
    }

   private:
    friend ThreadWorld;

    std::string (*text_)(const void* visit);
    const void* visit_;
    Seat& seat_;
    Wait* next_ = nullptr;
  };

  /// What a rank waits for; empty if it does not wait.
  std::string wait_of(int rank) {
    const std::lock_guard lock(seat(rank).mutex);
    const Wait* const wait = seat(rank).waits;
    return wait == nullptr ? std::string() : wait->text_(wait->visit_);
  }

  /// Grows with every failure and departure.
  std::uint64_t abort_epoch() const noexcept { return abort_epoch_.load(); }

  RankFailure failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  Seat& seat(int rank) noexcept { return seats_[std::size_t(rank)]; }

  void announce() noexcept {
    abort_epoch_.fetch_add(1);
    for (int r = 0; r < size_; ++r) seat(r).parker.wake();
  }

  int size_;
  bool spins_;
  std::unique_ptr<Seat[]> seats_;
  alignas(64) std::atomic<std::uint64_t> abort_epoch_{0};
  mutable std::mutex mutex_;
  RankFailure failure_;
};

}  // namespace cleave::detail
