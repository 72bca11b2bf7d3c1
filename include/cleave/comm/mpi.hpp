// The backend whose ranks are MPI processes, created from any communicator of the user.
//
// MPI errors are thrown as cleave::Error. Ranks wait by polling: a waiting rank learns when another
// one has failed or left, and gives up at the time-out. Only the headers of comm/mpi/ include
// Boost.MPI and mpi.h.
#pragma once

#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/mpi/header.hpp>
#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// A world of the ranks of an MPI communicator, which the caller still owns and may use otherwise.
/// A boost::mpi::communicator converts to an MPI_Comm implicitly.
///
/// If the ranks share memory, one that fails in a collective wakes all others, as does one whose
/// last communicator is destroyed by an exception; no group of that world can be used afterwards.
/// Otherwise ranks that wait for one that fails, leaves or stalls end the job at the time-out.
///
/// @collective every rank of `comm`
/// @throws Error if MPI is not running, or `comm` is null or an inter-communicator
CLEAVE_INLINE std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm);

/// The `MPI_Comm` of a group, e.g. `mpi_handle(mesh.group(tp{}))`, for other libraries and for the
/// user's own calls: the same ranks in the same order, with a message space of its own. Its errors
/// are returned (MPI_ERRORS_RETURN). cleave still owns it, and frees it with the group.
///
/// A group for the memory of a device gives the communicator of its ranks' host memory.
///
/// @collective the first call for a group: every rank of it
/// @throws Error if the ranks of the group are not MPI processes, or one of them has failed
CLEAVE_INLINE MPI_Comm mpi_handle(Communicator& group);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/mpi_body.hpp>
#endif
