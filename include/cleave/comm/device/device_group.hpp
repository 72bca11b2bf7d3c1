// The choice of the communicator that transfers device memory among the ranks of a group.
//
// Ranks that are threads of one process read each other's memory, on one GPU (which NCCL refuses)
// or on several: copies and reductions run on the device in rank order, ordered with each rank's
// stream by events. Processes with one GPU each, and threads whose GPUs cannot read each other's
// memory, communicate by NCCL; other groups, and programs without NCCL, stage through pinned
// memory.
#pragma once

#include <concepts>
#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/device/rank_device.hpp>
#include <cleave/tensor/cuda/device.hpp>
#if defined(CLEAVE_HAS_NCCL)
#include <cleave/comm/nccl.hpp>
#endif

namespace cleave::inline v0 {

namespace detail {

/// The communicator for device memory of a group's ranks, each of which enters its device.
/// @collective every rank of the group
/// @throws Error if there is no GPU, or the requested path does not reach all ranks
template <std::same_as<Cuda> Device>
std::shared_ptr<Communicator> make_device_group(Communicator& host);

}  // namespace detail

/// The group that transfers device memory among the same ranks, each of which enters its device.
///
/// @collective the first call: every rank of the group
/// @throws Error if there is no GPU
inline Communicator& communicator_on(Cuda, Communicator& group) {
  if (&group.host() != &group) return group;
  return *group.device_communicator(detail::make_device_group<Cuda>);
}
inline std::shared_ptr<Communicator> communicator_on(Cuda,
                                                     const std::shared_ptr<Communicator>& group) {
  if (&group->host() != group.get()) return group;
  return group->device_communicator(detail::make_device_group<Cuda>);
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/device/device_group_body.hpp>
#endif
