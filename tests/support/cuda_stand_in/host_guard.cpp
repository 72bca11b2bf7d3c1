#include "host_guard.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <unistd.h>

#include "memory.hpp"

namespace cuda_stand_in {
namespace {

struct Range {
  std::uintptr_t begin, end;
};

constexpr int max_ranges = arenas_per_device * max_devices;
Range ranges[max_ranges];
std::atomic<int> range_count = 0;
struct sigaction others;

void say(const char* text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

bool is_device_memory(std::uintptr_t address) {
  for (int i = 0; i < range_count.load(std::memory_order_acquire); ++i)
    if (address >= ranges[i].begin && address < ranges[i].end) return true;
  return false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (is_device_memory(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    say("cuda stand-in: host code touched device memory\n");
  // A handler installed earlier runs next and may report the location; without one, abort here.
  if (others.sa_flags & SA_SIGINFO) {
    others.sa_sigaction(signal, info, context);
  } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
    others.sa_handler(signal);
  }
  std::abort();
}

}  // namespace

void guard_range(const void* begin, std::size_t bytes) {
  const int count = range_count.load(std::memory_order_relaxed);
  if (count == max_ranges) return;
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  ranges[count] = {first, first + bytes};
  range_count.store(count + 1, std::memory_order_release);
}

void keep_guard() {
  struct sigaction now;
  if (sigaction(SIGSEGV, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  others = now;
  struct sigaction ours;
  std::memset(&ours, 0, sizeof(ours));
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace cuda_stand_in
