// The number of messages for many small tensors between processes that share no memory, counted in
// calls of MPI.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <mpi.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "processes.hpp"
#include "ranks.hpp"

namespace {
int messages_sent = 0;
}

/// MPI's profiling interface: this definition replaces the library's.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  ++messages_sent;
  return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::Processes;

TEST_CASE(
    "between processes without shared memory, many small tensors take at most one message per "
    "peer") {
  const char* const shared = std::getenv("CLEAVE_SHARED_MB");
  if (!Processes::get().launched() || shared == nullptr || shared != std::string("0"))
    return skip("needs mpirun and CLEAVE_SHARED_MB=0");
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    world.communicator().state().check = CheckLevel::off;  // no messages to compare calls
    constexpr int many = 200;
    std::vector<decltype(full<float>({1}, 1.f, mesh, Shard<0>{}))> tensors;
    for (int k = 0; k < many; ++k)
      tensors.push_back(full<float>({world.size() * (1 + k % 7)}, float(k), mesh, Shard<0>{}));
    const int before = messages_sent;
    const auto whole = redistribute_all(tensors, Replicate{});
    CHECK(messages_sent - before > 0);
    CHECK(messages_sent - before <= world.size() - 1);
    for (int k = 0; k < many; ++k)
      CHECK(whole[std::size_t(k)].to_local()(index_t(world.size() * (1 + k % 7)) - 1) == float(k));
  });
}
