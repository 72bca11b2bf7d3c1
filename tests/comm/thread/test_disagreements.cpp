// Threads that disagree about a call: all of them get an error, and can go on.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "outcomes.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_SUITE_BEGIN("threads only");  // ranks are threads here, even under mpirun

TEST_CASE("an error that a rank detects while reading fails the call on all ranks") {
  for (const int n : {2, 3, 7}) {
    const Outcome outcome = outcome_of(n, [](World& world) {
      Communicator& group = world.communicator();
      const bool odd_one = group.rank() == 1;
      Tensor<float, 1> source({6}), five({5}), six({6});
      for (int i = 0; i < 20; ++i) {
        Collective c = call(CollectiveKind::broadcast);
        c.source = source.view();
        c.destination = odd_one ? five.view() : six.view();
        const std::string own =
            "broadcast: the sender's view does not match the receiver's "
            "[shapes [6] float32 and [5] float32]";
        const std::string echo =
            "broadcast: rank 1 failed: " + own + " [rank " + std::to_string(group.rank()) + "]";
        CHECK_THROWS_WITH_AS(group.run(c), odd_one ? own.c_str() : echo.c_str(), Error);
        reduce_ones(group, 9000);
      }
    });
    CHECK(outcome.thrown == "");
  }
}

TEST_CASE("a transfer without a matching send is detected when checks are on") {
  const Outcome outcome = outcome_of(2, [](World& world) {
    world.communicator().state().check = CheckLevel::collective;
    Tensor<float, 1> source({6}), destination({6});
    const Box front{Shape::filled(1, 0), Shape::filled(1, 2)};
    const std::vector<Transfer> transfers{{1 - world.rank(), front, front}};
    Collective c = call(CollectiveKind::exchange);
    c.source = source.view();
    c.destination = destination.view();
    if (world.rank() == 0) c.sends = transfers;
    c.receives = transfers;
    world.communicator().run(c);
  });
  CHECK(
      outcome.texts[0] ==
      "exchange: the transfers from rank 1 to rank 0 differ from those that the receiver expects");
  CHECK(outcome.texts[1] == "exchange: rank 0 failed: " + outcome.texts[0] + " [rank 1]");
}

TEST_CASE("without checks, mismatched calls are errors on all ranks, which can go on") {
  for (const int n : {2, 3, 7}) {
    const Outcome outcome = outcome_of(n, [](World& world) {
      Communicator& group = world.communicator();
      group.state().check = CheckLevel::off;
      const auto check_refusal = [&](const Collective& c, const std::string& operation,
                                     const std::string& calls) {
        const std::string text = operation + ": ranks of group 'world' disagree: " + calls +
                                 " [rank " + std::to_string(group.rank()) + "]";
        CHECK_THROWS_WITH_AS(group.run(c), text.c_str(), Error);
      };
      Tensor<float, 1> six({6});
      six.fill_(1);
      const Tensor<float, 1> five = six.slice(0, 0, 5);
      for (int i = 0; i < 20; ++i) {
        Collective sum = call(CollectiveKind::all_reduce);
        const Tensor<float, 1>& mine = group.rank() == 1 ? five : six;
        sum.source = mine.view();
        sum.destination = mine.view();
        check_refusal(sum, "all_reduce",
                      "rank 0 runs all_reduce (sum) of [6] float32, rank 1 runs all_reduce (sum) "
                      "of [5] float32");
        Collective root = call(CollectiveKind::broadcast);
        root.root = group.rank() == 0 ? 0 : 1;
        root.source = six.view();
        root.destination = six.view();
        check_refusal(root, "broadcast",
                      "rank 0 runs broadcast from rank 0, rank 1 runs broadcast from rank 1");
        sum.source = six.view();
        sum.destination = six.view();
        const bool sums = group.rank() == 0;
        check_refusal(sums ? sum : call(CollectiveKind::barrier), sums ? "all_reduce" : "barrier",
                      "rank 0 runs all_reduce (sum) of [6] float32, rank 1 runs barrier");
        reduce_ones(group, 9000);
      }
    });
    CHECK(outcome.thrown == "");
  }
}

TEST_CASE("without checks, running different numbers of calls together is an error") {
  const Outcome outcome = outcome_of(3, [](World& world) {
    Communicator& group = world.communicator();
    const std::vector<Collective> barriers(world.rank() == 2 ? 3 : 2);
    const std::string text =
        "barrier: ranks of group 'world' disagree: rank 0 runs nothing more, rank 2 runs barrier "
        "[rank " +
        std::to_string(group.rank()) + "]";
    CHECK_THROWS_WITH_AS(group.run_all(barriers), text.c_str(), Error);
    reduce_ones(group, 9000);
  });
  CHECK(outcome.thrown == "");
}

TEST_CASE("different check levels of ranks are an error") {
  const Outcome outcome = outcome_of(2, [](World& world) {
    if (world.rank() == 1) world.communicator().state().check = CheckLevel::collective;
    reduce_ones(world.communicator());
  });
  CHECK(outcome.texts[0] ==
        "collective: ranks of group 'world' disagree: rank 0 does not compare its calls "
        "(CLEAVE_CHECK), rank 1 does [rank 0]");
  CHECK(outcome.texts[1] ==
        "collective: ranks of group 'world' disagree: rank 1 compares its calls (CLEAVE_CHECK), "
        "rank 0 does not [rank 1]");
}

TEST_SUITE_END();
