// The MPI backend beyond what all backends do: the origin of its communicators, the cores of its
// processes, its isolation from the user's messages, and split messages.
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#include <boost/mpi/communicator.hpp>
#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/node.hpp>
#include <cleave/tensor/tensor.hpp>

#include "../changed.hpp"
#include "../collective_cases.hpp"
#include "../collective_properties.hpp"
#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

bool launched() {
  if (Processes::get().launched()) return true;
  skip("needs mpirun");
  return false;
}

std::string refusal_of(MPI_Comm comm) {
  return cleave::testing::error_of([&] { mpi_communicator(comm); });
}

}  // namespace

TEST_CASE("without MPI_Init there are no MPI communicators") {
  if (Processes::get().launched()) return skip("mpirun has started it");
  CHECK(refusal_of(MPI_COMM_NULL) ==
        "mpi_communicator: MPI is not initialised, or has been finalised");
}

#if defined(__linux__)
TEST_CASE("processes that are bound to cores share those of all processes of their node") {
  if (!launched()) return;
  cpu_set_t usual;
  REQUIRE(sched_getaffinity(0, sizeof usual, &usual) == 0);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0, size = 1;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);

  std::vector<int> usable;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &usual)) usable.push_back(core);
  const int mine = usable[std::size_t(rank) % usable.size()];
  cpu_set_t bound;
  CPU_ZERO(&bound);
  CPU_SET(mine, &bound);
  REQUIRE(sched_setaffinity(0, sizeof bound, &bound) == 0);
  const auto place = detail::PlaceOnNode::in(MPI_COMM_WORLD);
  REQUIRE(sched_setaffinity(0, sizeof usual, &usual) == 0);

  std::vector<int> cores(std::size_t(size), -1);
  MPI_Allgather(&mine, 1, MPI_INT, cores.data(), 1, MPI_INT, node);
  MPI_Comm_free(&node);
  CHECK(place.rank == rank);
  CHECK(place.ranks == size);
  CHECK(place.cores == int(std::set<int>(cores.begin(), cores.end()).size()));
}
#endif

TEST_CASE("a world has the ranks of the user's MPI_Comm, in its order") {
  if (!launched()) return;
  const int rank = Processes::get().rank(), size = Processes::get().size();
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  const auto communicator = mpi_communicator(reversed);
  MPI_Comm_free(&reversed);  // the library has its own copy
  CHECK(communicator->rank() == size - 1 - rank);
  CHECK(communicator->size() == size);
  CHECK(communicator->label() == "world");
  CHECK(std::string(communicator->backend()) == "mpi");
  CHECK(communicator->state().world_rank == size - 1 - rank);
  World world(communicator);
  all_gather_cases(world);
}

TEST_CASE("a world has the ranks of the user's Boost.MPI communicator") {
  if (!launched()) return;
  const boost::mpi::communicator users;
  World world(mpi_communicator(users));
  CHECK(world.rank() == users.rank());
  CHECK(world.size() == users.size());
  all_reduce_cases(world);
}

TEST_CASE("null communicators and inter-communicators are refused") {
  if (!launched()) return;
  CHECK(refusal_of(MPI_COMM_NULL) == "mpi_communicator: the communicator is null");
  const int rank = Processes::get().rank(), size = Processes::get().size();
  if (size < 2) return;
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
  CHECK(refusal_of(both) == "mpi_communicator: an inter-communicator has no single group of ranks");
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

TEST_CASE("the user's messages and ours never mix") {
  if (!launched()) return;
  const int rank = Processes::get().rank(), size = Processes::get().size();
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  World world(mpi_communicator(MPI_COMM_WORLD));
  int received = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  all_gather_cases(world);
  endurance_cases(world, 50);
  CHECK(received == -1);
  world.barrier();
  MPI_Send(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(received == left);
}

TEST_CASE("the MPI_Comm of a group has its ranks in its order, and messages of its own") {
  if (!launched()) return;
  const int rank = Processes::get().rank(), size = Processes::get().size();
  World world(mpi_communicator(MPI_COMM_WORLD));
  std::vector<int> backwards;
  for (int r = size - 1; r >= 0; --r) backwards.push_back(r);
  const auto group = world.communicator().subgroup(backwards, "backwards");
  const MPI_Comm theirs = mpi_handle(*group);
  CHECK(mpi_handle(*group) == theirs);
  CHECK(mpi_handle(world.communicator()) != theirs);
  int place = -1, count = 0, relation = MPI_UNEQUAL;
  MPI_Comm_rank(theirs, &place);
  MPI_Comm_size(theirs, &count);
  CHECK(place == size - 1 - rank);
  CHECK(count == size);
  MPI_Comm_compare(theirs, MPI_COMM_WORLD, &relation);
  CHECK(relation == (size == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
  int received = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, theirs, &request);
  World inside(group);
  all_gather_cases(inside);
  endurance_cases(inside, 50);
  CHECK(received == -1);
  world.barrier();
  MPI_Send(&place, 1, MPI_INT, (place + 1) % size, 0, theirs);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(received == (place + size - 1) % size);
  CHECK(MPI_Send(&place, 1, MPI_INT, size, 0, theirs) != MPI_SUCCESS);  // errors are returned
}

TEST_CASE("ranks that are no MPI processes have no MPI_Comm") {
  const auto group = dry_communicator(0, 2);
  CHECK(cleave::testing::error_of([&] { mpi_handle(*group); }) ==
        "mpi_handle: group 'world' communicates by 'dry', not by MPI [rank 0]");
}

TEST_CASE("two worlds of the same ranks do not disturb each other") {
  if (!launched()) return;
  World first(mpi_communicator(MPI_COMM_WORLD)), second(mpi_communicator(MPI_COMM_WORLD));
  for (int i = 0; i < 3; ++i) {
    endurance_cases(first, 20);
    endurance_cases(second, 20);
  }
}

TEST_CASE("messages longer than the limit arrive whole, in every kind of collective") {
  if (!launched()) return;
  for (const std::size_t limit : {16u, 48u, 1000u}) {
    const Changed small(Processes::get().limits.message_bytes, std::size_t(limit));
    const Changed few(Processes::get().limits.library_count, index_t(limit) / 8);
    on_ranks({1, 2, 3, 4}, [](World& world) {
      broadcast_cases(world);
      scatter_cases(world);
      gather_cases(world);
      all_gather_cases(world);
      exchange_cases(world);
      rank_order_cases(world);
      for (const Style style : all_styles) {
        reduce_scatter_case<double>(world.communicator(), ReduceOp::sum, 0, style, 203);
        all_reduce_case<std::complex<double>>(world.communicator(), ReduceOp::avg, 83, 101, style,
                                              style, true);
      }
      world.communicator().state().check = CheckLevel::collective;
      endurance_cases(world, 50);
    });
  }
}

TEST_CASE("long pieces are reduced block by block, the last one shorter") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    Communicator& group = world.communicator();
    for (const Style style : {Style::dense, Style::every_second}) {
      all_reduce_case<float>(group, ReduceOp::sum, 977, 1009, style, style, true);
      all_reduce_case<bfloat16>(group, ReduceOp::max, 977, 1009, style, Style::dense, false);
      reduce_scatter_case<float>(group, ReduceOp::sum, 0, style, 150'001);
      reduce_scatter_case<double>(group, ReduceOp::product, 1, style, 90'001);
      broadcast_case<float>(group, group.size() - 1, style);
    }
  });
}

TEST_CASE("a broadcast of many parts arrives through trees of every shape") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const index_t count = 700'001;
    for (int root = 0; root < n; ++root) {
      Tensor<double, 1> data({count});
      for (index_t i = 0; i < count; ++i)
        data(i) = rank == root ? double(root) + 0.5 * double(i) : -1;
      Collective c = call(CollectiveKind::broadcast);
      c.root = root;
      if (rank == root) c.source = data.view();
      else c.destination = data.view();
      world.communicator().run(c);
      index_t wrong = 0;
      for (index_t i = 0; i < count; ++i) wrong += data(i) != double(root) + 0.5 * double(i);
      CHECK(wrong == 0);
    }
  });
}
