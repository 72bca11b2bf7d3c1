// More than 2^31 - 1 elements in one call and from one rank, without reduced limits: 2 ranks of
// about 7 GB each. Runs if CLEAVE_TEST_LARGE=1; test_communicator.cpp tests split messages at small
// sizes.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/tensor/tensor.hpp>

#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr index_t count = (index_t(1) << 31) + 12'345;

std::shared_ptr<Communicator> large_world() {
  const char* wanted = std::getenv("CLEAVE_TEST_LARGE");
  if (wanted == nullptr || std::string(wanted) != "1" || Processes::get().size() != 2) {
    skip("needs CLEAVE_TEST_LARGE=1, mpirun -n 2 and 16 GB");
    return nullptr;
  }
  return mpi_communicator(MPI_COMM_WORLD);
}

std::int8_t value(int rank, index_t i) { return std::int8_t((i * 31 + (i >> 20) + rank * 7) % 61); }

Tensor<std::int8_t, 1> values_of(int rank) {
  Tensor<std::int8_t, 1> tensor({count});
  std::int8_t* data = tensor.data();
  for (index_t i = 0; i < count; ++i) data[i] = value(rank, i);
  return tensor;
}

template <class Expected>
index_t wrong(const Tensor<std::int8_t, 1>& tensor, Expected expected) {
  const std::int8_t* data = tensor.data();
  index_t n = 0;
  for (index_t i = 0; i < tensor.size(); ++i) n += data[i] != expected(i);
  return n;
}

Box range(index_t begin, index_t end) { return {Shape::filled(1, begin), Shape::filled(1, end)}; }

}  // namespace

TEST_CASE("one transfer of more than 2^31 elements arrives whole") {
  const auto world = large_world();
  if (!world) return;
  const int rank = world->rank();
  const Tensor<std::int8_t, 1> data = rank == 0 ? values_of(0) : Tensor<std::int8_t, 1>({count});
  const Transfer transfer{1 - rank, range(0, count), range(0, count)};
  Collective c;
  c.kind = CollectiveKind::exchange;
  if (rank == 0) c.source = data.view(), c.sends = {&transfer, 1};
  else c.destination = data.view(), c.receives = {&transfer, 1};
  world->run(c);
  CHECK(wrong(data, [](index_t i) { return value(0, i); }) == 0);
}

TEST_CASE("an all-reduce and a reduce-scatter of more than 2^31 elements are right everywhere") {
  const auto world = large_world();
  if (!world) return;
  const int rank = world->rank();
  const auto sum = [](index_t i) { return std::int8_t(value(0, i) + value(1, i)); };
  Tensor<std::int8_t, 1> data = values_of(rank);
  {
    const index_t begin = rank == 0 ? 0 : 100, end = rank == 0 ? 100 : count;
    const Tensor<std::int8_t, 1> piece({end - begin});
    const std::array<Box, 2> pieces{range(0, 100), range(100, count)};
    Collective c;
    c.kind = CollectiveKind::reduce_scatter;
    c.source = data.view();
    c.destination = piece.view();
    c.pieces = pieces;
    world->run(c);
    CHECK(wrong(piece, [&](index_t i) { return sum(begin + i); }) == 0);
  }
  Collective c;
  c.kind = CollectiveKind::all_reduce;
  c.source = data.view();
  c.destination = data.view();
  world->run(c);
  CHECK(wrong(data, sum) == 0);
}

TEST_CASE("an all-gather and a broadcast of more than 2^31 elements are right everywhere") {
  const auto world = large_world();
  if (!world) return;
  const int rank = world->rank();
  const index_t half_way = count / 2;
  const std::array<Box, 2> pieces{range(0, half_way), range(half_way, count)};
  const Tensor<std::int8_t, 1> all({count});
  {
    const Tensor<std::int8_t, 1> mine = values_of(0)[pieces[std::size_t(rank)]].clone();
    Collective c;
    c.kind = CollectiveKind::all_gather;
    c.source = mine.view();
    c.destination = all.view();
    c.pieces = pieces;
    world->run(c);
    CHECK(wrong(all, [](index_t i) { return value(0, i); }) == 0);
  }
  Collective c;
  c.kind = CollectiveKind::broadcast;
  c.root = 1;
  const Tensor<std::int8_t, 1> ones = rank == 1 ? values_of(1) : all;
  if (rank == 1) c.source = ones.view();
  else c.destination = all.view();
  world->run(c);
  CHECK(wrong(ones, [](index_t i) { return value(1, i); }) == 0);
}
