// Which part of a message goes eagerly, and messages that do.
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi/communicator.hpp>
#include <cleave/comm/mpi/eager.hpp>

#include "../collective_cases.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using detail::bytes_in_parts;
using detail::eager_bytes_of;

namespace {

constexpr std::size_t mebibyte = 1 << 20;

}  // namespace

TEST_CASE("the slower the network, the more bytes are sent eagerly, within limits") {
  CHECK(eager_bytes_of(0) == mebibyte);
  CHECK(eager_bytes_of(50e-6) == mebibyte);
  CHECK(eager_bytes_of(1e-3) == 2'000'000);
  CHECK(eager_bytes_of(3600) == 4 * mebibyte);
}

TEST_CASE("messages go eagerly as long as those to all peers do not exceed the limit") {
  CHECK(bytes_in_parts(0, 4, mebibyte) == 0);
  CHECK(bytes_in_parts(mebibyte / 3, 4, mebibyte) == mebibyte / 3);
  CHECK(bytes_in_parts(mebibyte / 3 + 1, 4, mebibyte) == 0);
  CHECK(bytes_in_parts(mebibyte / 3 + 1, 4, 2 * mebibyte) == mebibyte / 3 + 1);
}

TEST_CASE("of a long message between two ranks, a part goes eagerly on every network") {
  for (const std::size_t limit : {mebibyte, 4 * mebibyte}) {
    CHECK(bytes_in_parts(mebibyte, 2, limit) == mebibyte);
    CHECK(bytes_in_parts(mebibyte + 4, 2, limit) == mebibyte / 4 + 1);
    CHECK(bytes_in_parts(64 * mebibyte, 2, limit) == mebibyte / 2);
  }
  CHECK(bytes_in_parts(8, 1, mebibyte) == 8);
}

TEST_CASE("the round trip is the same number on all ranks, and none within a node") {
  if (!Processes::get().launched()) return skip("needs mpirun");
  const int size = Processes::get().size(), rank = Processes::get().rank();
  if (size < 2) return skip("needs two processes");
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const std::vector<int> alone(std::size_t(size), 0);
  CHECK(detail::network_round_trip(comm, alone) == 0);
  CHECK(detail::network_round_trip(comm, {}) == 0);
  std::vector<int> apart = alone;
  apart.back() = 1;
  const double mine = detail::network_round_trip(comm, apart);
  double first = mine;
  MPI_Bcast(&first, 1, MPI_DOUBLE, 0, comm);
  MPI_Comm_free(&comm);
  CAPTURE(rank);
  CHECK(mine == first);
  CHECK(mine > 0);
  CHECK(mine < 60);
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
