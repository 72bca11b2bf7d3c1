// Accesses that stop the program, each in its own process.
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// The signal that stops a process which runs deed(); 0 if none does.
template <class F>
int signal_of(const F& deed) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    deed();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE_FIXTURE(Setup, "host code that touches device memory stops the program") {
  volatile int* const values = array.data;
  CHECK(signal_of([&] { (void)*values; }) == SIGSEGV);
  CHECK(signal_of([&] { *values = 3; }) == SIGSEGV);
  CHECK(signal_of([] {}) == 0);
}
