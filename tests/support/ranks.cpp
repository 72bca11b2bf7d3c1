#include "ranks.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/run.hpp>

#include "gpu.hpp"
#include "processes.hpp"

namespace cleave::testing {
namespace {

// Well above CLEAVE_TIMEOUT: a rank that waits in vain times out by itself first and gets here.
constexpr double timeout_seconds = 180;

// Calls the body so that failed checks name the rank.
void call(const RankBody& body, World& world) {
  std::exception_ptr thrown;
  {
    INFO("rank ", world.rank(), " of ", world.size());
    try {
      enter_gpu(world);
      body(world);
    } catch (...) {  // not past INFO: doctest unwinds it into state shared by the ranks
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

std::vector<int> counts_of_launch(std::initializer_list<int> counts, int processes) {
  std::vector<int> chosen;
  for (const int n : counts)
    if (n <= processes && 2 * n > processes) chosen.push_back(n);
  int largest = 0;
  for (const int n : counts)
    if (n <= processes) largest = std::max(largest, n);
  if (chosen.empty() && largest > 0) chosen.push_back(largest);
  return chosen;
}

void on_processes(const Processes& processes, int n, const RankBody& body) {
  std::exception_ptr thrown;
  try {
    if (auto communicator = processes.group_of_first(n)) {
      World world(std::move(communicator));
      call(body, world);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  processes.meet(timeout_seconds);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

void on_ranks(std::initializer_list<int> counts, const RankBody& body) {
  const Processes& processes = Processes::get();
  if (!processes.launched()) {
    for (const int n : counts) run_threads(n, [&](World& world) { call(body, world); });
    return;
  }
  const std::vector<int> chosen = counts_of_launch(counts, processes.size());
  if (chosen.empty())
    skip(("needs " + std::to_string(std::min(counts)) + " ranks or more").c_str());
  for (const int n : chosen) on_processes(processes, n, body);
}

}  // namespace cleave::testing
