// Which GPU a rank works on.
#pragma once

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave {

/// Makes the calling rank of a group work on a GPU: the one that its thread has chosen, otherwise
/// the one of its number among the ranks of its node, modulo the GPUs. `run` does so first.
/// @throws Error if there is none
inline void enter_device(Cuda, const Communicator& group) {
  cuda::choose_device(group.state().local_rank);
  cuda::detail::wrong_index_of_thread();  // pinned before ranks wait for each other on a device
}

}  // namespace cleave
