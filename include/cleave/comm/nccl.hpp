// NCCL for users: communicators from and to NCCL.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/nccl/nccl_communicator.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0 {

/// A communicator over the user's `ncclComm_t`, which the user still owns and which must outlive
/// it.
///
///     auto ranks = nccl_communicator(comm, world.shared_communicator());
///     auto mesh = init_device_mesh<dp, tp>(ranks, {2, 4}, Cuda{});
///
/// Collectives run on the current stream; a `cuda::StreamGuard` makes that the user's.
///
/// @param host  the same ranks in the same order, for host communication: shapes, checks
/// @collective  every rank of the group
/// @throws Error if the ranks differ, or the library is older than its header
inline std::shared_ptr<Communicator> nccl_communicator(ncclComm_t comm,
                                                       std::shared_ptr<Communicator> host) {
  return detail::NcclCommunicator::adopt(comm, std::move(host));
}

/// The `ncclComm_t` of a group, e.g. `nccl_handle(mesh.group(tp{}))`, for the user's own calls
/// between those of cleave. cleave still owns it.
///
/// @throws Error if the group does not communicate by NCCL, or has failed
inline ncclComm_t nccl_handle(Communicator& group) {
  auto* nccl = dynamic_cast<detail::NcclCommunicator*>(&group);
  const ncclComm_t comm = nccl == nullptr ? nullptr : nccl->handle();
  if (comm == nullptr)
    throw Error("nccl_handle",
                nccl == nullptr ? std::string("group '") + group.label() + "' communicates by '" +
                                      group.backend() + "', not by NCCL"
                                : "group '" + group.label() + "' is unusable after a failure",
                {.rank = group.state().world_rank});
  return comm;
}

}  // namespace cleave::inline v0
