// Creates worlds from MPI communicators; includes the whole backend.
#pragma once

#include <memory>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_communicator.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm) {
  return detail::MpiCommunicator::world(comm);
}

CLEAVE_INLINE MPI_Comm mpi_handle(Communicator& group) {
  if (auto* const mpi = dynamic_cast<detail::MpiCommunicator*>(&group.host())) return mpi->handle();
  throw Error(
      "mpi_handle",
      "group '" + group.label() + "' communicates by '" + group.host().backend() + "', not by MPI",
      {.rank = group.state().world_rank});
}

}  // namespace cleave::inline v0
