// Accesses that stop the program, each in its own process.
#include <csignal>
#include <cstdio>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// What a process prints that runs `deed` until a signal stops it; "survived" if none does.
std::string last_words(const std::function<void()>& deed) {
  std::FILE* const words = std::tmpfile();
  REQUIRE(words != nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(fileno(words), output);
    std::signal(SIGABRT, SIG_DFL);
    deed();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::rewind(words);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), words));
  std::fclose(words);
  return WIFSIGNALED(status) ? text : "survived";
}

}  // namespace

TEST_CASE_FIXTURE(Setup, "host code that touches device memory stops the program with a message") {
  volatile int* const values = array.data;
  CHECK(says(last_words([&] { (void)*values; }), "host code touched device memory"));
  CHECK(says(last_words([&] { *values = 3; }), "host code touched device memory"));
  CHECK(last_words([] {}) == "survived");
}
