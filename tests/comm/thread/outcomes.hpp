// Threads that fail or disagree: the errors of each, and calls that they make.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <cleave/comm/run.hpp>

#include "../collective_cases.hpp"

namespace cleave::testing {

struct Outcome {
  std::vector<std::string> texts;  ///< the message of what each rank threw
  std::string thrown;              ///< the message of what run_threads threw
};

/// Runs f on threads. Records what a rank throws, then rethrows it.
template <class F>
Outcome outcome_of(int ranks, F f) {
  Outcome outcome{std::vector<std::string>(std::size_t(ranks)), ""};
  try {
    run_threads(ranks, [&](World& world) {
      world.communicator().state().check = CheckLevel::local;
      try {
        f(world);
      } catch (const std::exception& error) {
        outcome.texts[std::size_t(world.rank())] = error.what();
        throw;
      }
    });
  } catch (const std::exception& error) {
    outcome.thrown = error.what();
  }
  return outcome;
}

inline void meet(Communicator& group) { group.run(call(CollectiveKind::barrier)); }

inline void reduce_ones(Communicator& group, index_t count = 3) {
  Tensor<float, 1> values({count});
  values.fill_(1);
  Collective c = call(CollectiveKind::all_reduce);
  c.source = values.view();
  c.destination = values.view();
  group.run(c);
}

}  // namespace cleave::testing
