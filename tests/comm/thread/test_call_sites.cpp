// Threads that wait for each other in different calls: the time-out names both, and their lines.
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/functional.hpp>

#include "outcomes.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");  // ranks are threads here, even under mpirun

TEST_CASE("a rank that waits in another group is named with its call, in every check level") {
  for (const CheckLevel level : {CheckLevel::collective, CheckLevel::local})
    for (const int n : {2, 3, 4}) {
      const int wait_line = __LINE__ + 8, other_line = __LINE__ + 6;
      const Outcome outcome = outcome_of(n, [&](World& world) {
        RankState& state = world.communicator().state();
        state.check = level;
        state.timeout_seconds = world.rank() == 0 ? 0.3 : 60;
        const Tensor<float, 1> x({3});
        if (world.rank() == 1) (void)functional::all_reduce(x, Sum{}, {world, {1, 0}}).wait();
        const CommScope part("solve");
        if (world.rank() != 1) world.barrier();
      });
      const std::string& text = outcome.texts[0];
      const auto names = [&](const std::string& part) {
        return text.find(part) != std::string::npos;
      };
      CAPTURE(text);
      CHECK(text.starts_with("barrier: rank 1 did not reach barrier of group 'world'"));
      CHECK(names("test_call_sites.cpp:" + std::to_string(wait_line) + " within 0.3 s"));
      CHECK(names("; rank 1 waits in "));
      CHECK(names("all_reduce of group '{1, 0} of world'"));
      CHECK(names("test_call_sites.cpp:" + std::to_string(other_line)));
      CHECK(names("in scope 'solve'") == (level == CheckLevel::collective));
    }
}

TEST_CASE("a rank that waits for nothing is named alone") {
  const Outcome outcome = outcome_of(2, [](World& world) {
    world.communicator().state().timeout_seconds = 0.2;
    if (world.rank() == 0) world.barrier();
    else
      while (world.communicator().state().failures->heard().empty()) std::this_thread::yield();
  });
  CHECK(outcome.texts[0].find(" waits in ") == std::string::npos);
  CHECK(outcome.texts[0].starts_with("barrier: rank 1 did not reach barrier of group 'world' at "));
}

TEST_SUITE_END();
