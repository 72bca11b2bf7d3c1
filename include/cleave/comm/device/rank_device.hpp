// Which GPU a rank uses.
#pragma once

#include <cstdlib>
#include <mutex>

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave::inline v0 {

/// Selects the GPU of the calling rank: the one that its thread has chosen, otherwise the number of
/// the rank on its node modulo the number of GPUs. `run` calls this first.
/// @throws Error if there is no GPU
inline void enter_device(Cuda, const Communicator& group) {
  // Makes the driver load all kernels when it starts, unless the user's environment says otherwise:
  // loading one at its first use waits for running kernels, which may wait for this thread.
  static std::once_flag once;
  if (group.size() > 1 && group.ranks_are_threads())
    std::call_once(once, [] { setenv("CUDA_MODULE_LOADING", "EAGER", 0); });
  cuda::choose_device(group.state().local_rank);
  cuda::detail::wrong_index_of_thread();  // pinned before ranks wait for each other on a device
}

}  // namespace cleave::inline v0
