// Creates worlds from MPI communicators; includes the whole backend.
#pragma once

#include <memory>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/communicator.hpp>

namespace cleave {

CLEAVE_INLINE std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm) {
  return detail::MpiCommunicator::world(comm);
}

}  // namespace cleave
