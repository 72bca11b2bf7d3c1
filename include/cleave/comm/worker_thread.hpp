// Threads that run a rank's asynchronous work, concurrently with the one that computes.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cleave::inline v0::detail {

/// Whether this thread is a worker thread.
inline bool& is_worker_thread() noexcept {
  static thread_local bool is_worker = false;
  return is_worker;
}

/// Asks for short time slices, so that a thread that mostly waits runs soon after its wait ends,
/// while another one computes. Linux supports this since 6.12; older kernels ignore it.
inline void request_short_time_slices() noexcept {
#if defined(__linux__) && defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
  struct Attributes {  // the kernel's sched_attr, first version
    std::uint32_t size = 48, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;
  } attributes;
  static_assert(sizeof(Attributes) == 48);
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = 100'000;  // nanoseconds
  syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

}  // namespace cleave::inline v0::detail
