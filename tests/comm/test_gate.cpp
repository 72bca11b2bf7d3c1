#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/gate.hpp>

using cleave::detail::Gate;
using cleave::detail::Parker;

TEST_CASE("the last to come opens a round, and only that one") {
  Gate gate(3);
  CHECK(gate.arrive(0) == Gate::Arrival::waits);
  CHECK(gate.arrive(0) == Gate::Arrival::waits);
  CHECK(!gate.open(0));
  CHECK(gate.arrive(0) == Gate::Arrival::opened);
  CHECK(gate.open(0));
  CHECK(!gate.open(1));
  CHECK(gate.arrive(1) == Gate::Arrival::waits);
  CHECK(gate.open(0));
}

TEST_CASE("a round that all have come to cannot be closed") {
  Gate gate(2);
  gate.arrive(0);
  gate.arrive(0);
  CHECK(!gate.close(0));
  gate.arrive(1);
  CHECK(!gate.close(0));
  CHECK(gate.close(1));
  CHECK(!gate.close(0));  // closed since, but that round is open
}

TEST_CASE("a closed gate stays closed, whoever comes after") {
  Gate gate(3);
  gate.arrive(0);
  gate.arrive(0);
  CHECK(gate.close(0));
  CHECK(gate.arrive(0) == Gate::Arrival::closed);
  CHECK(!gate.open(0));
  CHECK(gate.close(0));
  CHECK(gate.arrive(1) == Gate::Arrival::closed);
}

TEST_CASE("closing races with the last arrival: the round opens for all or for nobody") {
  for (int i = 0; i < 2000; ++i) {
    Gate gate(2);
    gate.arrive(0);
    std::atomic<bool> go{false};
    Gate::Arrival last{};
    std::thread other([&] {
      while (!go) {
      }
      last = gate.arrive(0);
    });
    go = true;
    const bool closed = gate.close(0);
    other.join();
    REQUIRE(closed == (last == Gate::Arrival::closed));
    REQUIRE(closed == !gate.open(0));
  }
}

TEST_CASE("a sleeper wakes when what it waits for has happened, before or after it sleeps") {
  Parker parker;
  std::atomic<int> turn{0};
  std::thread other([&] {
    for (int i = 1; i < 2000; i += 2) {
      parker.sleep([&] { return turn.load() == i; });
      turn.store(i + 1);
      parker.wake();
    }
  });
  for (int i = 0; i < 2000; i += 2) {
    parker.sleep([&] { return turn.load() == i; });
    turn.store(i + 1);
    parker.wake();
  }
  other.join();
  CHECK(turn == 2000);
}

TEST_CASE("a sleeper gives up at its deadline") {
  Parker parker;
  const auto begin = Parker::Clock::now();
  CHECK(!parker.sleep_until(begin + std::chrono::milliseconds(20), [] { return false; }));
  CHECK(Parker::Clock::now() - begin >= std::chrono::milliseconds(20));
  CHECK(parker.sleep_until(begin, [] { return true; }));
}
