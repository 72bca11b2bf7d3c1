// Cases with known outcomes: check.py checks what the tests' main and `on_ranks` report about them.
#include <stdexcept>

#include <doctest/doctest.h>

#include "ranks.hpp"

using namespace cleave;

TEST_CASE("every rank of two checks") {
  on_ranks({1, 2}, [](World& world) { CHECK(world.rank() < world.size()); });
}

TEST_CASE("a check fails on the last rank only") {
  on_ranks({2}, [](World& world) { CHECK(world.rank() == 0); });
}

TEST_CASE("a rank throws while the other waits for it") {
  on_ranks({2}, [](World& world) {
    CHECK(world.size() == 2);
    if (world.rank() == 1) throw std::runtime_error("planted");
    world.barrier();
  });
}

TEST_CASE("a requirement is not met on the last rank only") {
  on_ranks({2}, [](World& world) {
    REQUIRE(world.rank() == 0);
    world.barrier();
  });
}

TEST_CASE("the ranks still work after failures") {
  on_ranks({2}, [](World& world) {
    world.barrier();
    CHECK(world.size() == 2);
  });
}

TEST_CASE("nothing is checked") {
  on_ranks({2}, [](World& world) { world.barrier(); });
}

TEST_CASE("a case gives a reason not to run") { skip("planted"); }

TEST_CASE("a case needs two ranks, however it is started") {
  int ran = 0;
  on_ranks({2}, [&](World& world) {
    if (world.rank() == 0) ++ran;
    CHECK(world.size() == 2);
  });
}
