// Placements chosen by a text at run time.
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/placement/with_placement.hpp>

#include "errors.hpp"

using namespace cleave;
using cleave::testing::error_of;

namespace chosen_placements {
namespace {

using Rows = Placements<Shard<0>, Replicate>;
using Last = Placements<Balanced<-1>, Owned<2, 1>>;
using Dealt = Placements<BlockCyclic<0, 64>, BlockCyclic<1, 8>>;

int choose(const char* text) {
  return with_placement<Rows, Last, Dealt>(text, [](auto chosen) {
    using P = decltype(chosen);
    return std::is_same_v<P, Rows> ? 1 : std::is_same_v<P, Last> ? 2 : 3;
  });
}

}  // namespace

TEST_CASE("a text chooses one of the placements that are compiled") {
  CHECK(choose("S0,R") == 1);
  CHECK(choose(" S0, R ") == 1);
  CHECK(choose("B-1,O2:1") == 2);
  CHECK(choose("C0:64,C1:8") == 3);
  int called = 0;
  with_placement<Placements<>>("", [&](auto) { ++called; });
  CHECK(called == 1);
}

TEST_CASE("a text that is none of the choices is an error that lists them") {
  for (const std::string text : {"S1,R", "", "S0", "S0,R,R", "R,S0", "C0:6,C1:8"})
    CHECK(error_of([&] { choose(text.c_str()); }) ==
          "with_placement: '" + text + "' is not S0,R or B-1,O2:1 or C0:64,C1:8");
}

}  // namespace chosen_placements
