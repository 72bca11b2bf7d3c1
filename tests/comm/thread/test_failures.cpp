// Threads that fail, leave or are late: the other ranks get an error in whatever group they wait,
// nothing hangs, and no rank reads the memory of a rank that has gone.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/async/async.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/functional.hpp>

#include "../failing_call.hpp"
#include "errors.hpp"
#include "outcomes.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

std::shared_ptr<Communicator> group_of(World& world, std::vector<int> ranks, const char* label) {
  return world.communicator().subgroup(ranks, label);
}

}  // namespace

TEST_SUITE_BEGIN("threads only");  // ranks are threads here, even under mpirun

TEST_CASE("a rank that throws wakes all others, which name it and its error") {
  for (const int n : {2, 4, 7}) {
    const Outcome outcome = outcome_of(n, [](World& world) {
      if (world.rank() == 1) nap(0.02), throw std::runtime_error("no such file");
      world.barrier();
    });
    for (int r = 0; r < n; ++r)
      CHECK(outcome.texts[std::size_t(r)] ==
            (r == 1 ? "no such file"
                    : "barrier: rank 1 failed: no such file [rank " + std::to_string(r) + "]"));
    CHECK(outcome.thrown == "no such file");
  }
}

TEST_CASE("a rank that throws, leaves or stalls inside any call is named by all others, in time") {
  const int times = repetitions(1);
  int checked = 0;
  for (const int n : {2, 4})
    for (const CollectiveKind kind : all_kinds)
      for (const Failing way : all_failings)
        for (int i = 0; i < times; ++i, ++checked) {
          const int failing = (i + n - 1) % n;
          const double timeout = way == Failing::stalls ? 0.25 : 5;
          std::vector<double> waited(std::size_t(n), 0.0);
          const Outcome outcome = outcome_of(n, [&](World& world) {
            // with the default time-out: threads may start late
            communicate(world.communicator(), CollectiveKind::all_reduce, 1000);
            world.communicator().state().timeout_seconds = timeout;
            const auto begin = std::chrono::steady_clock::now();
            try {
              fail_inside(world, kind, (i + n / 2) % 2 == 0 ? 20 : 20'000, failing, way);
            } catch (...) {
              const std::chrono::duration<double> span = std::chrono::steady_clock::now() - begin;
              waited[std::size_t(world.rank())] = span.count();
              throw;
            }
          });
          for (int r = 0; r < n; ++r) {
            INFO(name_of(kind), ": rank ", r, " of ", n, " saw '", outcome.texts[std::size_t(r)],
                 "' after ", waited[std::size_t(r)], " s");
            CHECK(is_told(outcome.texts[std::size_t(r)], r, failing, way));
            if (r != failing) CHECK(waited[std::size_t(r)] < timeout + 3);
          }
        }
  MESSAGE(checked, " failures");
}

TEST_CASE("ranks are woken in groups that the failing rank is not in") {
  const Outcome outcome = outcome_of(5, [](World& world) {
    const int rank = world.rank();
    if (rank == 4) nap(0.02), throw Error("load", "broken");
    const auto pair = group_of(world, rank < 2 ? std::vector{0, 1} : std::vector{2, 3}, "tp");
    if (rank % 2 == 0) reduce_ones(*pair);
    else world.barrier();
  });
  CHECK(outcome.texts[0] == "all_reduce: rank 4 failed: load: broken [rank 0]");
  CHECK(outcome.texts[1] == "barrier: rank 4 failed: load: broken [rank 1]");
  CHECK(outcome.texts[2] == "all_reduce: rank 4 failed: load: broken [rank 2]");
  CHECK(outcome.texts[3] == "barrier: rank 4 failed: load: broken [rank 3]");
  CHECK(outcome.thrown == "load: broken");
}

TEST_CASE("a rank that was not waiting gets a failure at its next collective") {
  std::atomic<bool> failed{false};
  const Outcome outcome = outcome_of(3, [&](World& world) {
    const auto pair = group_of(world, world.rank() == 2 ? std::vector{2} : std::vector{0, 1}, "dp");
    if (world.rank() == 2) failed = true, throw Error("load", "broken");
    while (!failed) std::this_thread::yield();
    for (;;) meet(*pair);
  });
  CHECK(outcome.texts[0] == "barrier: rank 2 failed: load: broken [rank 0]");
  CHECK(outcome.texts[1] == "barrier: rank 2 failed: load: broken [rank 1]");
}

TEST_CASE("a rank that leaves early is named by those that wait for it") {
  for (const int n : {2, 3, 8}) {
    const Outcome outcome = outcome_of(n, [](World& world) {
      std::vector<int> everyone;
      for (int r = 0; r < world.size(); ++r) everyone.push_back(r);
      const auto tp = group_of(world, everyone, "tp");
      if (world.rank() == 1) return;
      reduce_ones(*tp);
    });
    CHECK(outcome.texts[1] == "");
    for (int r = 0; r < n; ++r)
      if (r != 1) {
        const std::string me = std::to_string(r);
        const std::string own = "all_reduce: rank 1 left while rank " + me +
                                " waits in all_reduce of group 'tp' [rank " + me + "]";
        const bool first = outcome.texts[std::size_t(r)] == own;
        const bool echo = outcome.texts[std::size_t(r)].find(
                              "failed: all_reduce: rank 1 left while rank ") != std::string::npos;
        CHECK((first || echo));
      }
    CHECK(outcome.thrown.find("all_reduce: rank 1 left while rank ") == 0);
  }
}

TEST_CASE("several ranks that left are all named") {
  const Outcome outcome = outcome_of(4, [](World& world) {
    if (world.rank() % 2 == 1) return;
    if (world.rank() == 2) nap(0.05), throw std::runtime_error("late");
    nap(0.02);
    world.barrier();
  });
  CHECK(outcome.texts[0] ==
        "barrier: ranks 1, 3 left while rank 0 waits in barrier of group 'world' [rank 0]");
}

TEST_CASE("a rank may leave while others go on without it") {
  const Outcome outcome = outcome_of(4, [](World& world) {
    const auto pair =
        group_of(world, world.rank() < 2 ? std::vector{0, 1} : std::vector{2, 3}, "dp");
    world.barrier();
    if (world.rank() >= 2) return;
    for (int i = 0; i < 300; ++i) reduce_ones(*pair, i % 2 ? 3 : 9000);
  });
  CHECK(outcome.thrown == "");
}

TEST_CASE("a rank that arrives too late is named, and gets an error") {
  const Outcome outcome = outcome_of(3, [](World& world) {
    world.communicator().state().timeout_seconds = world.rank() == 0 ? 0.05 : 60;
    if (world.rank() != 0) nap(0.5);
    world.communicator().run(call(CollectiveKind::barrier));
  });
  const std::string text =
      "barrier: ranks 1, 2 did not reach barrier of group 'world' within 0.05 s [rank 0]";
  CHECK(outcome.texts[0] == text);
  CHECK(outcome.texts[1] == "barrier: rank 0 failed: " + text + " [rank 1]");
  CHECK(outcome.texts[2] == "barrier: rank 0 failed: " + text + " [rank 2]");
  CHECK(outcome.thrown == text);
}

TEST_CASE("only the first failure is thrown, not its echoes") {
  for (int i = 0; i < 50; ++i) {
    const Outcome outcome = outcome_of(4, [&](World& world) {
      for (int k = 0; k < i; ++k) world.barrier();
      if (world.rank() == i % 4) throw std::runtime_error("the cause");
      for (;;) reduce_ones(world.communicator());
    });
    CHECK(outcome.thrown == "the cause");
  }
}

TEST_CASE("with checks on, a failure in the comparison wakes the others, too") {
  const Outcome outcome = outcome_of(4, [](World& world) {
    world.communicator().state().check = CheckLevel::collective;
    if (world.rank() == 2) throw std::runtime_error("gone");
    reduce_ones(world.communicator());
  });
  CHECK(outcome.texts[0] == "all_reduce: rank 2 failed: gone [rank 0]");
}

TEST_CASE("no rank reads tensors of a rank that has unwound") {
  // Tensors live for one call. A rank throws before the call or finds an error inside it, at a time
  // that varies between runs. Sanitizers detect invalid accesses.
  for (int seed = 0; seed < 120; ++seed) {
    const int n = 2 + seed % 6, culprit = seed % n, moment = seed % 11;
    std::atomic<int> finished{0};
    const Outcome outcome = outcome_of(n, [&](World& world) {
      Communicator& group = world.communicator();
      if (seed % 2) group.state().check = CheckLevel::collective;
      for (int i = 0; i <= moment; ++i) {
        const bool fails = i == moment && group.rank() == culprit;
        if (fails && seed % 3 != 0) {
          if (seed % 4 == 0) nap(0.001);
          throw std::runtime_error("culprit");
        }
        const index_t count = i % 2 ? 20000 : 20;
        Tensor<double, 1> source({count}), destination({count + fails});
        source.fill_(1);
        Collective c = call(i % 3 == 0 ? CollectiveKind::all_reduce : CollectiveKind::broadcast);
        c.root = (culprit + 1) % n;
        c.source = source.view();
        c.destination = destination.view();
        group.run(
            c);  // the longer destination: refused before the entry barrier, or found after it
      }
      ++finished;
    });
    CHECK(finished == 0);
    for (const std::string& text : outcome.texts) CHECK(text != "");
    const std::string& cause = outcome.texts[std::size_t(culprit)];
    CHECK(outcome.thrown == cause);
    CHECK((cause == "culprit" || cause.find("differ") != std::string::npos ||
           cause.find("does not match") != std::string::npos));
  }
}

TEST_CASE("a rank that unwinds past asynchronous work reports its failure before it waits") {
  const Outcome outcome = outcome_of(3, [](World& world) {
    const std::shared_ptr<Communicator> duplicate = world.communicator().duplicate();
    if (world.rank() != 1) return world.barrier();
    const Async<int> work =
        start_async(Host{}, world.communicator(), [duplicate] { return meet(*duplicate), 1; });
    throw std::runtime_error("the cause");
  });
  const std::string echo =
      "barrier: rank 1 failed: it ended while asynchronous work was in progress [rank ";
  CHECK(outcome.texts[0] == echo + "0]");
  CHECK(outcome.texts[2] == echo + "2]");
  CHECK(outcome.thrown == "the cause");
}

TEST_CASE("time-outs that race with arrivals end in success or in an error, never in a hang") {
  int succeeded = 0, failed = 0;
  for (int i = 0; i < 60; ++i) {
    const Outcome outcome = outcome_of(3, [&](World& world) {
      world.communicator().state().timeout_seconds = 0.002;
      for (int k = 0; k < 3; ++k) {
        if (world.rank() == 1) nap(0.0002 * (i % 12));
        Tensor<float, 1> values({5000});
        values.fill_(1);
        Collective c = call(CollectiveKind::all_reduce);
        c.source = values.view();
        c.destination = values.view();
        world.communicator().run(c);
        CHECK(values(4999) == 3);
      }
    });
    if (outcome.thrown.empty()) ++succeeded;
    else {
      ++failed;
      CHECK(outcome.thrown.find("did not reach ") != std::string::npos);
    }
  }
  CHECK(succeeded + failed == 60);
}

TEST_CASE("exceptions not derived from std::exception are rethrown unchanged") {
  try {
    run_threads(3, [](World& world) {
      if (world.rank() == 2) throw 42;
      try {
        world.barrier();
      } catch (const Error& error) {
        CHECK(error.message() == "rank 2 failed: an exception that is not a std::exception");
        throw;
      }
    });
    CHECK(false);
  } catch (int value) {
    CHECK(value == 42);
  }
}

TEST_CASE("a failure that a rank swallows still ends its collectives, and the run") {
  const Outcome outcome = outcome_of(2, [](World& world) {
    if (world.rank() == 1) throw std::runtime_error("gone");
    for (int i = 0; i < 3; ++i)
      CHECK_THROWS_WITH_AS(world.barrier(), "barrier: rank 1 failed: gone [rank 0]", Error);
  });
  CHECK(outcome.texts[0] == "");
  CHECK(outcome.thrown == "gone");
}

TEST_CASE("the user's threads may be ranks; one whose communicator is destroyed has left") {
  auto communicators = thread_communicators(2);
  Error error("", "");
  std::thread other([own = std::move(communicators[1])]() mutable {
    meet(*own);
    own.reset();
  });
  meet(*communicators[0]);
  try {
    meet(*communicators[0]);
  } catch (const Error& e) {
    error = e;
  }
  other.join();
  CHECK(error.message() == "rank 1 left while rank 0 waits in barrier of group 'world'");
  CHECK_THROWS_WITH_AS(thread_communicators(0),
                       "thread_communicators: 0 ranks; there must be at least 1", Error);
}

TEST_CASE("joining a group that another rank has abandoned is an immediate error") {
  std::atomic<bool> given_up{false};
  std::thread late;
  std::string text;
  std::chrono::duration<double> waited{};
  run_threads(2, [&](World& world) {
    world.communicator().state().timeout_seconds = 5;
    if (world.rank() == 0) {
      CHECK_THROWS_WITH_AS(
          world.barrier(),
          "barrier: rank 1 left while rank 0 waits in barrier of group 'world' [rank 0]", Error);
      given_up = true;
      return;
    }
    late = std::thread([&, group = world.shared_communicator()] {
      while (!given_up) nap(0.001);
      const auto begin = std::chrono::steady_clock::now();
      text = error_of([&] { meet(*group); });
      waited = std::chrono::steady_clock::now() - begin;
    });
  });
  late.join();
  CHECK(text ==
        "barrier: rank 0 failed: barrier: rank 1 left while rank 0 waits in barrier of group "
        "'world' [rank 0] [rank 1]");
  CHECK(waited.count() < 3);
}

TEST_CASE("a rank leaves after its asynchronous work, whose results others may wait for") {
  for (int i = 0; i < 3; ++i) {
    std::optional<Async<Tensor<double, 1>>> first[2], second[3];
    run_threads(3, [&](World& world) {
      const int rank = world.rank();
      world.communicator().state().timeout_seconds = 5;
      const Tensor<double, 1> x({5});
      x.fill_(rank + 1);
      if (rank == 1) nap(0.05);
      if (rank < 2)
        first[rank].emplace(functional::all_reduce(x, Sum{}, {world, std::vector<int>{0, 1}}));
      second[rank].emplace(functional::all_reduce(x, Sum{}, world));
    });
    for (const auto& sum : first) CHECK((**sum)(4) == 3);
    for (const auto& sum : second) CHECK((**sum)(4) == 6);
  }
}

TEST_CASE("a rank that throws while its asynchronous work waits for others ends at once") {
  std::optional<Async<Tensor<double, 1>>> kept[3];
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = outcome_of(3, [&](World& world) {
    const Tensor<double, 1> x({5});
    x.fill_(1);
    if (world.rank() == 2) return nap(0.05), world.barrier();
    kept[world.rank()].emplace(functional::all_reduce(x, Sum{}, world));
    if (world.rank() == 1) throw std::runtime_error("gone");
  });
  const std::chrono::duration<double> span = std::chrono::steady_clock::now() - begin;
  CHECK(outcome.thrown == "gone");
  for (const int r : {0, 1})
    CHECK(error_of([&] { (void)kept[r]->wait(); }) ==
          "functional::all_reduce: rank 1 failed: gone [rank " + std::to_string(r) + "]");
  CHECK(span.count() < 10);
}

TEST_CASE("a barrier holds every rank until the last has arrived") {
  for (const int n : {2, 7}) {
    std::atomic<int> come{0};
    run_threads(n, [&](World& world) {
      for (int i = 1; i <= 200; ++i) {
        ++come;
        world.barrier();
        CHECK(come >= n * i);
        world.barrier();
      }
    });
    CHECK(come == n * 200);
  }
}

TEST_SUITE_END();
