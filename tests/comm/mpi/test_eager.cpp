// Which part of a message goes eagerly, and messages that do.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi/communicator.hpp>
#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/network_probe.hpp>

#include "../changed.hpp"
#include "../collective_cases.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using detail::bytes_in_parts;
using detail::eager_bytes_between;
using detail::eager_bytes_to_all;
using detail::eager_bytes_to_one;
using detail::EagerBytes;

namespace {

constexpr std::size_t mebibyte = 1 << 20;

}  // namespace

TEST_CASE("the slower the network, the more bytes are sent eagerly to several, within limits") {
  CHECK(eager_bytes_to_all(0) == mebibyte);
  CHECK(eager_bytes_to_all(50e-6) == mebibyte);
  CHECK(eager_bytes_to_all(1e-3) == 2'000'000);
  CHECK(eager_bytes_to_all(3600) == 4 * mebibyte);
}

TEST_CASE("messages to one go eagerly up to the length that gains most, if that is worthwhile") {
  std::vector<std::size_t> asked;
  const auto limit = [&](std::vector<double> gains) {
    asked.clear();
    return eager_bytes_to_one([&](std::size_t bytes) {
      asked.push_back(bytes);
      return gains.at(asked.size() - 1);
    });
  };
  constexpr std::size_t step = mebibyte / 8;
  CHECK(limit({1, 1, 1, 1, 1, 1}) == 0);
  CHECK(asked ==
        std::vector<std::size_t>{step, 2 * step, 4 * step, 8 * step, 16 * step, 32 * step});
  CHECK(limit({1.03, 1.03, 1.03, 1.03, 1.03, 1.03}) == 0);
  CHECK(limit({1.3, 1, 1, 1, 1, 1}) == step);
  CHECK(limit({1.3, 1.03, 1.2, 1, 1, 1}) == 4 * step);
  CHECK(limit({1.3, 0.7, 1.2, 1, 1, 1}) == step);
  CHECK(limit({2, 2, 2, 2, 2, 2}) == 32 * step);
  CHECK(limit({0.5, 1, 1, 1, 2, 2}) == 32 * step);
  CHECK(limit({0.5, 1, 1, 1, 1, 2}) == 0);
}

TEST_CASE("messages go eagerly as long as those to all peers do not exceed the limit") {
  const auto parts = [](std::size_t bytes, std::size_t limit) {
    return bytes_in_parts(bytes, 4, {.to_all = limit, .to_one = 0, .of_longer = 1});
  };
  CHECK(parts(0, mebibyte) == 0);
  CHECK(parts(mebibyte / 3, mebibyte) == mebibyte / 3);
  CHECK(parts(mebibyte / 3 + 1, mebibyte) == 0);
  CHECK(parts(mebibyte / 3 + 1, 2 * mebibyte) == mebibyte / 3 + 1);
  CHECK(parts(1, 0) == 0);
}

TEST_CASE("of a long message between two ranks, a quarter goes eagerly up to a limit") {
  const auto parts = [](std::size_t bytes, std::size_t of_longer) {
    return bytes_in_parts(bytes, 2, {.to_all = 0, .to_one = mebibyte, .of_longer = of_longer});
  };
  for (const std::size_t limit : {mebibyte / 2, std::size_t(0)}) CHECK(parts(8, limit) == 8);
  CHECK(parts(mebibyte, 0) == mebibyte);
  CHECK(parts(mebibyte + 4, mebibyte / 2) == mebibyte / 4 + 1);
  CHECK(parts(64 * mebibyte, mebibyte / 2) == mebibyte / 2);
  CHECK(parts(64 * mebibyte, 0) == 0);
  CHECK(bytes_in_parts(8, 1, {}) == 8);
}

TEST_CASE("parts cover a message once, those that wait for a reply first") {
  const Changed limit(detail::mpi_message_limit, std::size_t(100'000));
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 61'440, 300'000})
    for (const std::size_t in_parts : {std::size_t(0), bytes / 2, bytes})
      for (const bool shortest_first : {false, true}) {
        std::vector<int> covered(bytes);
        bool first = true;
        detail::for_each_part(
            bytes, in_parts, shortest_first, [&](std::size_t at, std::size_t part) {
              CHECK(part > 0);
              CHECK(part <= (at < in_parts ? detail::eager_part() : detail::mpi_message_limit));
              if (std::exchange(first, false)) CHECK((at == in_parts) == (in_parts < bytes));
              for (std::size_t i = at; i < at + part; ++i) ++covered[i];
            });
        CHECK(std::ranges::count(covered, 1) == std::ptrdiff_t(bytes));
      }
}

TEST_CASE("the shortest part of a message is the first or the last one") {
  const auto parts = [](std::size_t bytes, bool shortest_first) {
    std::vector<std::size_t> lengths;
    detail::for_each_part(bytes, bytes, shortest_first,
                          [&](std::size_t, std::size_t part) { lengths.push_back(part); });
    return lengths;
  };
  using Lengths = std::vector<std::size_t>;
  const std::size_t part = detail::eager_part();
  CHECK(parts(2 * part + 5, true) == Lengths{5, part, part});
  CHECK(parts(2 * part + 5, false) == Lengths{part, part, 5});
  for (const bool shortest_first : {false, true}) {
    CHECK(parts(2 * part, shortest_first) == Lengths{part, part});
    CHECK(parts(5, shortest_first) == Lengths{5});
    CHECK(parts(0, shortest_first).empty());
  }
}

TEST_CASE("what is eager is the same on all ranks, not measured within a node, and arrives") {
  if (!Processes::get().launched()) return skip("needs mpirun");
  const int size = Processes::get().size(), rank = Processes::get().rank();
  if (size < 2) return skip("needs two processes");
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  detail::MpiFailureDetector detector(comm);
  const std::string label = "world";
  detail::MpiOpContext world;
  world.comm = comm;
  world.rank = rank;
  world.size = size;
  world.detector = &detector;
  world.label = &label;
  world.operation = "run";
  world.timeout_seconds = 60;
  const std::vector<int> alone(std::size_t(size), 0);
  CHECK(eager_bytes_between(world, alone) == EagerBytes{});
  CHECK(eager_bytes_between(world, {}) == EagerBytes{});
  std::vector<int> apart = alone;
  apart.back() = 1;
  const EagerBytes mine = eager_bytes_between(world, apart);
  EagerBytes first = mine;
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm);
  CAPTURE(rank);
  CHECK(mine == first);
  if (mine == EagerBytes{0, 0, 0}) {
    MESSAGE("no message is sooner in parts");
  } else {
    CHECK(mine.to_all >= mebibyte);
    CHECK(mine.to_all <= 4 * mebibyte);
    CHECK(mine.to_one >= mebibyte / 8);
    CHECK(mine.to_one <= 4 * mebibyte);
    CHECK((mine.of_longer == 0 || mine.of_longer == mebibyte / 2));
  }
  if (rank == 0 || rank == size - 1) {
    const int ranks[] = {0, size - 1};
    world.rank = rank == 0 ? 0 : 1;
    world.size = 2;
    world.comm_ranks = world.world_ranks = ranks;
    detail::NetworkProbe probe(world);
    const double trip = probe.round_trip();
    CHECK(trip > 0);
    CHECK(trip < 60);
    const double gain = probe.gain_in_parts(mebibyte / 4);
    CHECK(gain > 0.001);
    CHECK(gain < 1000);
    for (const bool shortest_first : {false, true}) {
      world.eager = {.to_one = mebibyte, .shortest_first = shortest_first};
      std::vector<std::byte> sent(200'001), received(sent.size());
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte(i % 251 + i / 60'000);
      detail::MpiMessages messages(world);
      messages.receive(received.data(), received.size(), 1 - world.rank);
      messages.send(sent.data(), sent.size(), 1 - world.rank);
      messages.finish();
      CHECK(received == sent);
    }
  }
  MPI_Comm_free(&comm);
}

TEST_CASE("parts of hundreds of kilobytes arrive in their order, sent eagerly or not") {
  on_ranks({2, 3, 4}, [](World& world) {
    // between four ranks, the first length is eager everywhere, the second one only if a round trip
    // takes more than 0.6 ms, and the third one nowhere
    for (const index_t length : {40'000, 50'000, 400'000})
      for (const Style style : {Style::dense, Style::transposed})
        equal_parts_case<double>(world.communicator(), length, style);
  });
}
