// The main of every test executable: runs the doctest cases in this process or, under mpirun, in
// each process, and reduces the outcome of every case over the processes.
//
// Its last line is read by scripts: `cleave-cases: 41 passed, 0 failed, 2 skipped`, once per
// launch. A case without any check has failed, unless it says why it cannot run (`skip`). If the
// cases need a GPU and none is present, all are skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <array>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cases.hpp"
#include "gpu.hpp"
#include "processes.hpp"

namespace cleave::testing {
namespace {

struct Case {
  std::string name;
  int asserts = 0;
  int failures = 0;
  int skips = 0;
};

std::mutex skip_mutex;
int skips_of_case = 0;
std::vector<Case> cases;

// Records the outcome of each case; doctest itself prints the failures.
struct Recorder final : doctest::IReporter {
  explicit Recorder(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    skips_of_case = 0;
    cases.push_back({.name = data.m_name});
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    cases.back().asserts = stats.numAssertsCurrentTest;
    cases.back().failures = stats.testCaseSuccess ? 0 : 1;
    cases.back().skips = skips_of_case;
  }

  void report_query(const doctest::QueryData& listed) override {
    for (unsigned i = 0; i < listed.num_data; ++i) {
      cases.push_back({.name = listed.data[i]->m_name, .skips = 1});
      if (lacks_gpu()) skip("needs a GPU");
    }
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("recorder", 0, Recorder);

// Sums the outcomes of each case over the processes, so that the verdict is the same in all.
bool judge(const Processes& processes) {
  std::vector<std::array<int, 3>> seen;
  for (const Case& c : cases) seen.push_back({c.asserts, c.failures, c.skips});
  processes.sum(seen);

  int passed = 0, failed = 0, skipped = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [asserts, failures, skips] = seen[i];
    if (failures > 0) ++failed;
    else if (asserts > 0) ++passed;
    else if (skips > 0) ++skipped;
    else {
      ++failed;
      if (processes.rank() == 0)
        std::printf("FAILED: \"%s\" has checked nothing\n", cases[i].name.c_str());
    }
  }
  if (processes.rank() == 0)
    std::printf("cleave-cases: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0;
}

}  // namespace

void skip(const char* reason) {
  const std::lock_guard lock(skip_mutex);
  ++skips_of_case;
  if (Processes::get().rank() == 0)
    std::printf("skipped: \"%s\": %s\n", cases.back().name.c_str(), reason);
}

}  // namespace cleave::testing

int main(int argc, char** argv) {
  auto& processes = cleave::testing::Processes::get();
  doctest::Context context(argc, argv);
  context.setOption("no-version", true);
  context.setOption("no-intro", true);
  if (processes.rank() != 0) context.setOption("minimal", true);
  const bool listed_only = cleave::testing::lacks_gpu();
  if (listed_only) {
    const char* const options[] = {argv[0], "--list-test-cases", "--out=/dev/null"};
    context.applyCommandLine(3, options);
  }
  const int status = context.run();
  if (context.shouldExit() && !listed_only) return status;
  return cleave::testing::judge(processes) && status == 0 ? 0 : 1;
}
