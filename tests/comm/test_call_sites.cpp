// Ranks that make different calls, or of which one skips a call, with checks on: errors name both
// calls and the lines where they were made.
#include <string>

#include <doctest/doctest.h>

#include <cleave/core/call_site.hpp>
#include <cleave/functional.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// How a line of this file ends in a message.
std::string line_text(int line) { return "test_call_sites.cpp:" + std::to_string(line); }
}  // namespace

TEST_CASE("a call site is the place of the call, not of the function that is called") {
  const auto place = [](CallSite where = CallSite::here()) { return where; };
  const CallSite here = place();
  CHECK(here.line == __LINE__ - 1);
  CHECK(contains(to_string(here), " at "));
  CHECK(contains(to_string(here), line_text(__LINE__ - 3)));
  CHECK(to_string(CallSite{}) == "");
}

TEST_CASE("a rank that skips a collective and makes the next: both calls and their lines") {
  on_ranks({2, 3, 4}, [](World& world) {
    const CheckLevel usual = world.communicator().state().check;
    const Tensor<float, 2> x({2, 3});
    x.fill_(1);
    for (const CheckLevel level : {CheckLevel::collective, CheckLevel::local}) {
      if (level == CheckLevel::local && std::string(world.communicator().backend()) == "mpi")
        continue;
      world.communicator().state().check = level;
      (void)functional::all_reduce(x, Sum{}, world).wait();
      const int before = __LINE__ - 1;
      int first = 0, second = 0;
      const std::string text = error_of([&] {
        first = __LINE__ + 1;
        if (world.rank() != 1) (void)functional::all_reduce(x, Max{}, world).wait();
        second = __LINE__ + 1;
        (void)functional::all_gather(x, 0, world).wait();
      });
      if (second == 0) second = first + 2;
      CAPTURE(text);
      CHECK(contains(text, "rank 0 runs all_reduce"));
      CHECK(contains(text, "rank 1 runs all_gather"));
      CHECK(contains(text, line_text(first)));
      CHECK(contains(text, line_text(second)));
      if (level != CheckLevel::collective) continue;
      CHECK(contains(text, "for functional::all_reduce of [2, 3]"));
      CHECK(contains(text, "; before: all_reduce of 6 float32"));
      CHECK(contains(text, line_text(before)));
    }
    world.communicator().state().check = usual;
  });
}
