// Which communicator passes device memory among the ranks of a group.
//
// Ranks that are threads of one process read each other's memory, be it of one GPU, which NCCL
// would refuse, or of several: copies and reductions run on the device in rank order, ordered with
// each rank's stream by events. Processes with a GPU each communicate by NCCL; others, and programs
// without NCCL, stage through pinned memory.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/peer_order.hpp>
#include <cleave/comm/cuda/rank_device.hpp>
#include <cleave/comm/cuda/staged.hpp>
#include <cleave/comm/launch.hpp>
#include <cleave/comm/thread.hpp>
#include <cleave/kernels/cuda/reduce_views.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>
#include <cleave/tensor/cuda/device.hpp>
#if defined(CLEAVE_HAS_NCCL)
#include <cleave/comm/cuda/nccl.hpp>
#endif

namespace cleave {

namespace detail {

/// How device memory is passed (environment: CLEAVE_CUDA_COMM=auto|direct|nccl|staged).
enum class DevicePath : std::uint8_t { automatic, direct, nccl, staged };

/// @throws Error for a value that means nothing, or that this program was compiled without
inline DevicePath requested_device_path() {
  const char* text = setting("CLEAVE_CUDA_COMM");
  const std::string path = text == nullptr ? "auto" : text;
  if (path == "auto") return DevicePath::automatic;
  if (path == "direct") return DevicePath::direct;
  if (path == "staged") return DevicePath::staged;
#if defined(CLEAVE_HAS_NCCL)
  if (path == "nccl") return DevicePath::nccl;
#else
  if (path == "nccl")
    throw Error("run",
                "CLEAVE_CUDA_COMM is 'nccl', and this program was compiled without NCCL "
                "(CLEAVE_HAS_NCCL=1)");
#endif
  throw Error("run", "CLEAVE_CUDA_COMM is '" + path + "'; use auto, direct, nccl or staged");
}

/// Whether every rank has a GPU of its own. @collective every rank of the group
inline bool each_has_a_gpu(Communicator& host) {
  std::int32_t here = host.state().local_rank < cuda::device_count(), all = 0;
  const Shape one(std::array<index_t, 1>{1});
  Collective c;
  c.kind = CollectiveKind::all_reduce;
  c.op = ReduceOp::min;
  c.source = ConstView::dense(&here, DType::int32, one);
  c.destination = View::dense(&all, DType::int32, one);
  c.operation = "init_device_mesh";
  host.run(c);
  return all != 0;
}

/// The communicator of the devices of a group's ranks; they are made to work on one each, in turn.
inline std::shared_ptr<Communicator> make_device_group(Communicator& host) {
  const std::shared_ptr<Communicator> reference(std::shared_ptr<void>(), &host);
  if (std::strcmp(host.backend(), "dry") == 0) return reference;
  enter_device(Cuda{}, host);
  DevicePath path = requested_device_path();
  auto* threads = dynamic_cast<ThreadCommunicator*>(&host);
  if (path == DevicePath::direct && threads == nullptr)
    throw Error("init_device_mesh",
                "CLEAVE_CUDA_COMM is 'direct', but only threads of one process read each other's "
                "memory; use nccl or staged",
                {.rank = host.state().world_rank});
  if (path == DevicePath::automatic && threads != nullptr) path = DevicePath::direct;
  if (path == DevicePath::direct) return threads->on(Cuda{});
#if defined(CLEAVE_HAS_NCCL)
  if (path == DevicePath::nccl || (path == DevicePath::automatic && each_has_a_gpu(host)))
    return NcclCommunicator::create(reference);
#endif
  return std::make_shared<StagedCommunicator>(reference);
}

}  // namespace detail

/// The group that passes device memory among the same ranks, each of which enters its device.
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

}  // namespace cleave
