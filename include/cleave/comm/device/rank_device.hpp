// Which GPU a rank uses.
#pragma once

#include <cstdlib>
#include <mutex>

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave {

namespace detail {

/// Called before the first CUDA call: if several ranks are threads, makes the driver load all
/// kernels when it starts, unless the user's environment says otherwise. Loading a kernel at its
/// first use waits for running kernels, and these may be a collective that waits for this thread.
inline void load_kernels_early(const Communicator& group) {
  static std::once_flag once;
  if (group.size() > 1 && group.ranks_are_threads())
    std::call_once(once, [] { setenv("CUDA_MODULE_LOADING", "EAGER", 0); });
}

}  // namespace detail

/// Selects the GPU of the calling rank: the one that its thread has chosen, otherwise the number of
/// the rank on its node modulo the number of GPUs. `run` calls this first.
/// @throws Error if there is no GPU
inline void enter_device(Cuda, const Communicator& group) {
  detail::load_kernels_early(group);
  cuda::choose_device(group.state().local_rank);
  cuda::detail::wrong_index_of_thread();  // pinned before ranks wait for each other on a device
}

}  // namespace cleave
