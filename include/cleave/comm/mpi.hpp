// The backend whose ranks are MPI processes, from any communicator that the user has.
//
// Errors of MPI come back as cleave::Error. Waiting is polling: a rank that waits hears when
// another one has failed or left, and gives up at the time-out. Boost.MPI and mpi.h are included
// by the headers of comm/mpi/ only.
#pragma once

#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/mpi/header.hpp>
#include <cleave/core/config.hpp>

namespace cleave {

/// A world of the ranks of an MPI communicator, which stays the caller's and free for other use. A
/// boost::mpi::communicator becomes an MPI_Comm by itself.
///
/// A rank that fails in a collective wakes all others, as does one whose last communicator is
/// destroyed by an exception. No group of that world can be used then, and messages may be under
/// way for ever: MPI_Finalize may wait for them.
///
/// @collective every rank of `comm`
/// @throws Error if MPI is not running, or `comm` is null or an inter-communicator
CLEAVE_INLINE std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/mpi_body.hpp>
#endif
