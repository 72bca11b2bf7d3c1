// Accesses that stop the program, each in its own process.
#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// The last message of a process that runs `deed`; "survived" if the process does not die.
std::string last_words(const std::function<void()>& deed) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    dup2(pipe_ends[1], STDOUT_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    deed();
    constexpr char survived[] = "survived";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, survived, sizeof(survived) - 1);
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string words;
  char buffer[256];
  for (ssize_t count; (count = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;)
    words.append(buffer, std::size_t(count));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return words;
}

bool says(const std::string& words, const char* what) {
  const bool found = words.find(what) != std::string::npos;
  if (!found) MESSAGE(words);
  return found && words.find("survived") == std::string::npos;
}

}  // namespace

TEST_CASE("host code that reads or writes device memory stops the program with a message") {
  const Fresh fresh;
  const Array<int> array(std::vector<int>{1, 2});
  volatile int* values = array.data;
  CHECK(says(last_words([&] { (void)values[1]; }), "host code touched device memory"));
  CHECK(says(last_words([&] { values[0] = 3; }), "host code touched device memory"));
  CHECK(last_words([] {}) == "survived");
}
