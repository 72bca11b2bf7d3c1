#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/thread/cancellable_barrier.hpp>

using cleave::detail::CancellableBarrier;
using cleave::detail::Parker;

TEST_CASE("the last arrival opens a round, and only that one") {
  CancellableBarrier barrier(3);
  CHECK(barrier.arrive(0) == CancellableBarrier::Arrival::waits);
  CHECK(barrier.arrive(0) == CancellableBarrier::Arrival::waits);
  CHECK(!barrier.open(0));
  CHECK(barrier.arrive(0) == CancellableBarrier::Arrival::opened);
  CHECK(barrier.open(0));
  CHECK(!barrier.open(1));
  CHECK(barrier.arrive(1) == CancellableBarrier::Arrival::waits);
  CHECK(barrier.open(0));
}

TEST_CASE("a completed round cannot be closed") {
  CancellableBarrier barrier(2);
  barrier.arrive(0);
  barrier.arrive(0);
  CHECK(!barrier.close(0));
  barrier.arrive(1);
  CHECK(!barrier.close(0));
  CHECK(barrier.close(1));
  CHECK(!barrier.close(0));  // the barrier is closed by now, but that round is open
}

TEST_CASE("a closed barrier stays closed for later arrivals") {
  CancellableBarrier barrier(3);
  barrier.arrive(0);
  barrier.arrive(0);
  CHECK(barrier.close(0));
  CHECK(barrier.arrive(0) == CancellableBarrier::Arrival::closed);
  CHECK(!barrier.open(0));
  CHECK(barrier.close(0));
  CHECK(barrier.arrive(1) == CancellableBarrier::Arrival::closed);
}

TEST_CASE("closing races with the last arrival: the round opens for all threads or for no thread") {
  for (int i = 0; i < 2000; ++i) {
    CancellableBarrier barrier(2);
    barrier.arrive(0);
    std::atomic<bool> go{false};
    CancellableBarrier::Arrival last{};
    std::thread other([&] {
      while (!go) {
      }
      last = barrier.arrive(0);
    });
    go = true;
    const bool closed = barrier.close(0);
    other.join();
    REQUIRE(closed == (last == CancellableBarrier::Arrival::closed));
    REQUIRE(closed == !barrier.open(0));
  }
}

TEST_CASE("a sleeper wakes when its condition becomes true, before or after it sleeps") {
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
  const auto begin = std::chrono::steady_clock::now();
  CHECK(!parker.sleep_until(begin + std::chrono::milliseconds(20), [] { return false; }));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
  CHECK(parker.sleep_until(begin, [] { return true; }));
}
