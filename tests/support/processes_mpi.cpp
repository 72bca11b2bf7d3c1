// Built with MPI: the processes of MPI_COMM_WORLD where mpirun has started this one.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "processes.hpp"

namespace cleave::testing {
namespace {

bool started_by_mpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace

Processes::Processes() : launched_(started_by_mpirun()) {
  if (!launched_) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Processes::~Processes() {
  if (launched_) MPI_Finalize();
}

Processes& Processes::get() {
  static Processes processes;
  return processes;
}

void Processes::sum(std::vector<std::array<int, 3>>& table) const {
  if (launched_)
    MPI_Allreduce(MPI_IN_PLACE, table.data(), int(3 * table.size()), MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
}

void Processes::meet(double seconds) const {
  if (!launched_) return;
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int arrived = 0; arrived == 0;) {
    MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0 && std::chrono::steady_clock::now() > deadline) {
      std::fprintf(stderr, "rank %d waited %g s for the others to end a case\n", rank_, seconds);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    std::this_thread::yield();
  }
}

}  // namespace cleave::testing
