// Errors of ranks that are MPI processes and wait in vain. Each case makes its own world, because a
// world in which a rank has failed is unusable; failures.py tests whole programs that fail.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/tensor/tensor.hpp>

#include "../collective_cases.hpp"
#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

// A world of all processes, if there are at least two.
std::shared_ptr<Communicator> new_world() {
  if (Processes::get().launched() && Processes::get().size() > 1)
    return mpi_communicator(MPI_COMM_WORLD);
  skip("needs mpirun -n 2 or more");
  return nullptr;
}

// The same, if all processes share memory: elsewhere a failure ends the job.
std::shared_ptr<Communicator> new_shared_world() {
  auto world = new_world();
  if (world == nullptr || world->transport() == "mpi: shared memory") return world;
  skip("needs shared memory");
  return nullptr;
}

void gather_of(Communicator& group, index_t mine, index_t others) {
  const int n = group.size(), rank = group.rank();
  std::vector<Box> pieces;
  index_t begin = 0;
  for (int r = 0; r < n; ++r) {
    const index_t count = r == rank ? mine : others;
    pieces.push_back({Shape::filled(1, begin), Shape::filled(1, begin + count)});
    begin += count;
  }
  const Tensor<float, 1> piece({mine}), whole({begin});
  Collective c = call(CollectiveKind::all_gather);
  c.source = piece.view();
  c.destination = whole.view();
  c.pieces = pieces;
  group.run(c);
}

}  // namespace

TEST_CASE("a rank that misses the time-out is named, with the call and the group") {
  auto world = new_shared_world();
  if (!world) return;
  const int last = world->size() - 1;
  const std::string rank = "rank " + std::to_string(world->rank());
  const std::string absent = "rank " + std::to_string(last);
  if (world->rank() < last) {
    world->state().timeout_seconds = 0.4;
    const std::string text = error_of([&] { gather_of(*world, 3, 3); });
    const std::string expected = absent + " did not reach all_gather of group 'world' within 0.4 s";
    if (last == 1) CHECK(text == "all_gather: " + expected + " [" + rank + "]");
    else CHECK(contains(text, expected));  // its own error, or another rank's
  }
  Processes::get().meet(30);
  if (world->rank() == last) {  // the late rank is told when it arrives
    const std::string text = error_of([&] { gather_of(*world, 3, 3); });
    CHECK(contains(text, "failed: all_gather: " + absent + " did not reach all_gather"));
  }
}

TEST_CASE("two ranks that wait for each other in different groups both get an error") {
  auto world = new_shared_world();
  if (!world) return;
  if (world->rank() < 2) {
    const std::vector<int> ranks{0, 1};
    const auto one = world->subgroup(ranks, "one"), other = world->subgroup(ranks, "other");
    world->state().timeout_seconds = 0.3;
    const std::string text = error_of([&] { gather_of(world->rank() == 0 ? *one : *other, 3, 3); });
    CHECK(contains(text, " did not reach all_gather of group 'o"));
    CHECK(contains(text, " within 0.3 s; rank "));
    CHECK(contains(text, " waits in all_gather of group 'o"));
  }
  Processes::get().meet(30);
}

TEST_CASE("after a failure every call of every group of the world throws it again at once") {
  auto world = new_shared_world();
  if (!world) return;
  std::vector<int> all;
  for (int r = 0; r < world->size(); ++r) all.push_back(r);
  const auto inner = world->subgroup(all, "inner");
  const int last = world->size() - 1;
  if (world->rank() == last) {
    world->state().timeout_seconds = 0.2;
    CHECK(contains(error_of([&] { gather_of(*inner, 1, 1); }), "did not reach all_gather"));
  }
  Processes::get().meet(30);
  world->state().timeout_seconds = 20;
  for (int i = 0; i < 2; ++i) {
    const std::string expected = "rank " + std::to_string(last) + " failed: all_gather: ";
    CHECK(contains(error_of([&] { gather_of(*world, 1, 1); }), expected));
    CHECK(contains(error_of([&] { gather_of(*inner, 1, 1); }), expected));
    CHECK(contains(error_of([&] { world->subgroup(all, "late"); }), "subgroup: " + expected));
  }
}

TEST_CASE("an exception that ends a rank's use of its world wakes the others") {
  auto world = new_shared_world();
  if (!world) return;
  const int last = world->size() - 1, rank = world->rank();
  Processes::get().meet(30);  // no rank is still making its world
  const std::string text = error_of([&, own = std::move(world)]() mutable {
    const std::shared_ptr<Communicator> mine = std::move(own);
    if (rank == last) throw std::runtime_error("planted");
    gather_of(*mine, 1000, 1000);
  });
  if (rank == last) CHECK(text == "planted");
  else
    CHECK(contains(text, "rank " + std::to_string(last) +
                             " failed: its communicators were destroyed by an exception"));
}

TEST_CASE("processes that read each other's memory detect mismatched sizes, and may go on") {
  auto world = new_shared_world();
  if (!world) return;
  world->state().check = CheckLevel::off;
  const int rank = world->rank();
  const std::string text = error_of([&] { gather_of(*world, 10, rank == 1 ? 11 : 10); });
  if (rank == 1)
    CHECK(contains(text, "does not match the receiver's [shapes [10] float32 and [11]"));
  else CHECK(contains(text, "rank 1 failed in all_gather of group 'world'"));
  CHECK(error_of([&] { gather_of(*world, 10, 10); }) == "");
}

TEST_CASE("different lists of members for a subgroup are an error") {
  auto world = new_world();
  if (!world) return;
  std::vector<int> ranks{0, 1};
  if (world->rank() == 1) ranks = {1, 0};
  if (world->rank() < 2) {
    world->state().timeout_seconds = 5;
    const std::string text = error_of([&] { world->subgroup(ranks, "pair"); });
    CHECK(contains(text, "list different members of group 'pair'"));
  }
}

TEST_CASE("calls that differ are reported on all ranks, which may go on") {
  auto world = new_world();
  if (!world) return;
  world->state().check = CheckLevel::collective;
  const bool last = world->rank() == world->size() - 1;
  const std::string text = error_of([&] {
    if (last) world->run(call(CollectiveKind::barrier));
    else gather_of(*world, 5, 5);
  });
  CHECK(contains(text, "ranks of group 'world' disagree: rank 0 runs all_gather of "));
  CHECK(contains(text, "runs barrier of 0 "));
  CHECK(error_of([&] { gather_of(*world, 5, 5); }) == "");
}
