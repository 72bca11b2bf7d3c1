// What many small tensors take between processes that share no memory, counted in calls of MPI.
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
int messages = 0, collectives = 0;
}

// MPI's profiling interface: these definitions replace the library's.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  ++messages;
  return PMPI_Isend(data, count, type, peer, tag, comm, request);
}
extern "C" int MPI_Allgather(const void* source, int sent, MPI_Datatype sent_type,
                             void* destination, int received, MPI_Datatype received_type,
                             MPI_Comm comm) {
  ++collectives;
  return PMPI_Allgather(source, sent, sent_type, destination, received, received_type, comm);
}
extern "C" int MPI_Allgatherv(const void* source, int sent, MPI_Datatype sent_type,
                              void* destination, const int* received, const int* received_at,
                              MPI_Datatype received_type, MPI_Comm comm) {
  ++collectives;
  return PMPI_Allgatherv(source, sent, sent_type, destination, received, received_at, received_type,
                         comm);
}
extern "C" int MPI_Alltoallv(const void* source, const int* sent, const int* sent_at,
                             MPI_Datatype sent_type, void* destination, const int* received,
                             const int* received_at, MPI_Datatype received_type, MPI_Comm comm) {
  ++collectives;
  return PMPI_Alltoallv(source, sent, sent_at, sent_type, destination, received, received_at,
                        received_type, comm);
}

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::Processes;

TEST_CASE("between processes without shared memory, many small tensors take one call of MPI") {
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
    messages = collectives = 0;
    const auto whole = redistribute_all(tensors, Replicate{});
    CHECK(messages == 0);
    CHECK(collectives == 1);
    for (int k = 0; k < many; ++k)
      CHECK(whole[std::size_t(k)].to_local()(index_t(world.size() * (1 + k % 7)) - 1) == float(k));
  });
}
