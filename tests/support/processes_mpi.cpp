// Built with MPI: the processes of MPI_COMM_WORLD if mpirun started this process.
#include <chrono>
#include <cstdio>
#include <thread>

#include <cleave/comm/launch.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_communicator.hpp>

#include "processes.hpp"

namespace cleave::testing {

Processes::Processes() : launched_(detail::launched_processes() != 0) {
  if (!launched_) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  (void)mpi_communicator(MPI_COMM_WORLD);  // the first world's processes share memory
}

Processes::~Processes() {
  if (launched_) MPI_Finalize();
}

Processes& Processes::get() {
  static Processes processes;
  return processes;
}

std::shared_ptr<Communicator> Processes::group_of_first(int n) const {
  MPI_Comm first = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank_ < n ? 0 : MPI_UNDEFINED, rank_, &first);
  if (first == MPI_COMM_NULL) return nullptr;
  auto communicator = detail::MpiCommunicator::world(first, limits);
  MPI_Comm_free(&first);
  return communicator;
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
