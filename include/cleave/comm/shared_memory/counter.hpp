// A counter in shared memory: one process raises it, others wait until it is large enough.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include <sched.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

namespace cleave::inline v0::detail {

class SharedCounter {
 public:
  /// @pre value is less than 2^31 more than before
  void raise(std::uint32_t value) noexcept {
    value_.store(value);
    if (sleepers_.load() > 0) wake();
  }

  bool has_reached(std::uint32_t value) const noexcept {
    return std::int32_t(value_.load(std::memory_order_acquire) - value) >= 0;
  }

  /// Sleeps until the counter is raised, for about a millisecond at most.
  void sleep_until(std::uint32_t value) noexcept {
    ++sleepers_;  // before the load: `raise` looks for sleepers after its store
    const std::uint32_t seen = value_.load();
    if (std::int32_t(seen - value) < 0) sleep(seen);
    --sleepers_;
  }

 private:
#if defined(__linux__)
  void sleep(std::uint32_t seen) noexcept {
    const timespec limit{0, 1'000'000};
    syscall(SYS_futex, &value_, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
  void wake() noexcept { syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }
#else
  void sleep(std::uint32_t) noexcept { sched_yield(); }
  void wake() noexcept {}
#endif

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
                sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
};

}  // namespace cleave::inline v0::detail
