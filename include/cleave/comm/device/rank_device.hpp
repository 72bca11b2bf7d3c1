// Which GPU a rank works on.
#pragma once

#include <cstdlib>
#include <cstring>
#include <mutex>

#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave {

namespace detail {

/// Before the first call of CUDA: threads that communicate have the driver load all kernels when it
/// starts, unless the user's environment says otherwise. It loads one at its first use else, which
/// waits for what runs on a GPU, that may be a collective that waits for this thread.
inline void load_kernels_early(const Communicator& group) {
  static std::once_flag once;
  if (group.size() > 1 && std::strcmp(group.backend(), "thread") == 0)
    std::call_once(once, [] { setenv("CUDA_MODULE_LOADING", "EAGER", 0); });
}

}  // namespace detail

/// Makes the calling rank of a group work on a GPU: the one that its thread has chosen, otherwise
/// the one of its number among the ranks of its node, modulo the GPUs. `run` does so first.
/// @throws Error if there is none
inline void enter_device(Cuda, const Communicator& group) {
  detail::load_kernels_early(group);
  cuda::choose_device(group.state().local_rank);
  cuda::detail::wrong_index_of_thread();  // pinned before ranks wait for each other on a device
}

}  // namespace cleave
