// How the threads of a group wait for each other: asleep, or at a barrier that can be closed.
//
// A round of the barrier opens for all threads or for none: a thread that gives up waiting closes
// the barrier, and closing fails if all threads have arrived by then. A thread that has passed a
// round can therefore rely on all others passing it, too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <cleave/core/clock.hpp>

namespace cleave::inline v0::detail {

/// Tells the processor that this thread spins.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("pause" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Where the threads of one rank sleep until a condition holds.
///
/// The waker first changes the state, by a sequentially consistent store, and then calls `wake`;
/// the sleeper's predicate reads the state by a sequentially consistent load. No wake-up is lost.
class Parker {
 public:
  template <class Ready>
  void sleep(Ready ready) {
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    condition_.wait(lock, ready);
    sleepers_.fetch_sub(1);
  }

  /// @return whether `ready()` holds; if not, the deadline has passed
  template <class Ready>
  bool sleep_until(Clock::time_point deadline, Ready ready) {
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    const bool in_time = condition_.wait_until(lock, deadline, ready);
    sleepers_.fetch_sub(1);
    return in_time;
  }

  void wake() noexcept {
    if (sleepers_.load() == 0) return;
    {
      const std::lock_guard lock(mutex_);
    }  // the sleeper is before its check or in its wait
    condition_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  alignas(64) std::atomic<int> sleepers_{0};
};

/// A barrier of `size` threads with consecutive rounds: 0, 1, 2, ..
class CancellableBarrier {
 public:
  enum class Arrival { waits, opened, closed };

  explicit CancellableBarrier(int size) noexcept : size_(std::uint64_t(size)) {}

  /// Arrives at `round`; the last thread opens it, and must wake the sleeping ones.
  Arrival arrive(std::uint64_t round) noexcept {
    const std::uint64_t before = arrived_.fetch_add(1);
    if (before & closed_bit) return Arrival::closed;
    if (before + 1 != size_ * (round + 1)) return Arrival::waits;
    opened_.store(round + 1);
    return Arrival::opened;
  }

  bool open(std::uint64_t round) const noexcept { return opened_.load() > round; }

  /// Closes the barrier for good, unless all threads have arrived at `round`.
  /// @return whether it is closed; if not, `round` opens at once
  bool close(std::uint64_t round) noexcept {
    std::uint64_t arrived = arrived_.load();
    while (!(arrived & closed_bit)) {
      if (arrived >= size_ * (round + 1)) return false;
      if (arrived_.compare_exchange_weak(arrived, arrived | closed_bit)) return true;
    }
    return !open(round);  // another thread closed it: in this round, or in a later one
  }

 private:
  static constexpr std::uint64_t closed_bit = std::uint64_t(1) << 63;

  alignas(64) std::atomic<std::uint64_t> arrived_{0};
  alignas(64) std::atomic<std::uint64_t> opened_{0};
  std::uint64_t size_;
};

}  // namespace cleave::inline v0::detail
