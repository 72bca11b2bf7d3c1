// Which communicator passes device memory among the ranks of a group, and which GPU a rank takes.
//
// Ranks that are threads of one process read each other's memory, be it of one GPU, which NCCL
// would refuse, or of several: copies and reductions run on the device in rank order, ordered with
// each rank's stream by events. Processes stage through pinned memory.
#pragma once

#include <cstring>
#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/peer_order.hpp>
#include <cleave/comm/cuda/staged.hpp>
#include <cleave/comm/thread.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/kernels/cuda/reduce_views.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>
#include <cleave/tensor/cuda/device.hpp>

namespace cleave {

namespace detail {

/// The communicator of the devices of a group's ranks; they are made to work on one each, in turn.
inline std::shared_ptr<Communicator> make_device_group(Communicator& host) {
  const std::shared_ptr<Communicator> reference(std::shared_ptr<void>(), &host);
  if (std::strcmp(host.backend(), "dry") == 0) return reference;
  cuda::choose_device(host.state().local_rank);
  if (auto* threads = dynamic_cast<ThreadCommunicator*>(&host)) return threads->on(Cuda{});
  return std::make_shared<StagedCommunicator>(reference);
}

}  // namespace detail

/// The group that passes device memory among the same ranks; a rank works on the GPU that its
/// thread has chosen, otherwise on that of its number among the ranks of its node, modulo the GPUs.
///
/// @collective the first call: every rank of the group
/// @throws Error if there is no GPU
inline Communicator& communicator_on(Cuda, Communicator& group) {
  if (&group.host() != &group) return group;
  return *group.companion(detail::make_device_group);
}
inline std::shared_ptr<Communicator> communicator_on(Cuda,
                                                     const std::shared_ptr<Communicator>& group) {
  if (&group->host() != group.get()) return group;
  return group->companion(detail::make_device_group);
}

/// What `run` does first on a rank whose device is a GPU: it takes one.
/// @throws Error if there is none
inline void enter_device(Cuda, World& world) {
  cuda::choose_device(world.communicator().state().local_rank);
}

}  // namespace cleave
