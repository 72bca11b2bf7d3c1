// How device memory is transferred among the ranks of a group: chosen by their capabilities.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/device/device_group.hpp>
#include <cleave/comm/device/peer_order.hpp>
#include <cleave/comm/device/rank_device.hpp>
#include <cleave/comm/device/staged.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/comm/launch.hpp>
#include <cleave/comm/thread/thread_communicator.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/tensor/cuda/device.hpp>
#if defined(CLEAVE_HAS_NCCL)
#include <cleave/comm/nccl/nccl_communicator.hpp>
#endif

namespace cleave::inline v0 {

namespace detail {

/// How device memory is transferred (environment: CLEAVE_CUDA_COMM=auto|direct|nccl|staged).
enum class DevicePath : std::uint8_t { automatic, direct, nccl, staged };

/// @throws Error for an unknown value, or one that the program was compiled without
inline DevicePath requested_device_path() {
  const char* text = setting("CLEAVE_CUDA_COMM");
  const std::string path = text == nullptr ? "auto" : text;
#if !defined(CLEAVE_HAS_NCCL)
  if (path == "nccl")
    throw Error("run",
                "CLEAVE_CUDA_COMM is 'nccl', and this program was compiled without NCCL "
                "(CLEAVE_HAS_NCCL=1)");
#endif
  constexpr const char* names[] = {"auto", "direct", "nccl", "staged"};
  for (int i = 0; i < 4; ++i)
    if (path == names[i]) return DevicePath(i);
  throw Error("run", "CLEAVE_CUDA_COMM is '" + path + "'; use auto, direct, nccl or staged");
}

/// Two GPUs, the first of which cannot read the memory of the second.
struct OutOfReach {
  int device, peer;
};

/// Whether kernels on `device`, the current one, can read memory of `peer`. Enables access to the
/// peer's pool, which holds tensors, and to its other memory.
inline bool reaches(int device, int peer) {
  if (device == peer) return true;
  if (!cuda::can_access(device, peer)) return false;
  cuda::detail::share_pool(peer, device);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return status == cudaErrorPeerAccessAlreadyEnabled;
}

/// A pair of GPUs that keeps threads from reading each other's memory, if any; equal on all ranks.
/// @collective every rank of the group
inline std::optional<OutOfReach> find_out_of_reach(Communicator& threads) {
  if (cuda::device_count() == 1) return std::nullopt;
  const std::int64_t mine = cuda::current_device();
  const std::vector<std::int64_t> devices =
      gather_values(threads, mine, "init_device_mesh", Unobserved::run);
  std::int64_t blocked = -1;
  for (const std::int64_t device : devices)
    if (blocked < 0 && !reaches(int(mine), int(device))) blocked = device;
  const std::vector<std::int64_t> all =
      gather_values(threads, blocked, "init_device_mesh", Unobserved::run);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] >= 0) return OutOfReach{int(devices[r]), int(all[r])};
  return std::nullopt;
}

/// A number that identifies the current GPU among those of all nodes. Made of the properties by
/// which NCCL, which refuses duplicate GPUs, identifies them.
/// @throws Error if the PCI bus id cannot be queried
inline std::int64_t gpu_number() {
  char node[256] = {}, place[64] = {};
  static_cast<void>(gethostname(node, sizeof(node) - 1));
  std::string boot;  // distinguishes nodes of the same name
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  cuda::check(cudaDeviceGetPCIBusId(place, sizeof(place), cuda::current_device()),
              "init_device_mesh");
  return std::int64_t(checksum(std::string(node) + '/' + boot + '/' + place));
}

/// Whether every rank uses a different GPU. Device numbers do not show it: a launcher may show each
/// process a single GPU. @collective every rank of the group
inline bool each_has_a_gpu(Communicator& host) {
  std::vector<std::int64_t> gpus =
      gather_values(host, gpu_number(), "init_device_mesh", Unobserved::run);
  std::ranges::sort(gpus);
  return std::ranges::adjacent_find(gpus) == gpus.end();
}

template <std::same_as<Cuda> Device>
std::shared_ptr<Communicator> make_device_group(Communicator& host) {
  const std::shared_ptr<Communicator> reference(std::shared_ptr<void>(), &host);
  if (host.is_dry()) return reference;
  enter_device(Cuda{}, host);
  const DevicePath path = requested_device_path();
  auto* threads = dynamic_cast<ThreadCommunicator*>(&host);
  if (path == DevicePath::direct && threads == nullptr)
    throw Error("init_device_mesh",
                "CLEAVE_CUDA_COMM is 'direct', but only threads of one process read each other's "
                "memory; use nccl or staged",
                {.rank = host.state().world_rank});
  if (threads != nullptr && (path == DevicePath::direct || path == DevicePath::automatic)) {
    const std::optional<OutOfReach> pair = find_out_of_reach(host);
    if (!pair) return threads->on(Device{});
    if (path == DevicePath::direct)
      throw Error("init_device_mesh",
                  "CLEAVE_CUDA_COMM is 'direct', but GPU " + std::to_string(pair->device) +
                      " cannot read the memory of GPU " + std::to_string(pair->peer) +
                      "; use auto, nccl or staged",
                  {.rank = host.state().world_rank});
  }
#if defined(CLEAVE_HAS_NCCL)
  if (path == DevicePath::nccl || (path == DevicePath::automatic && each_has_a_gpu(host)))
    return NcclCommunicator::create(reference);
#endif
  return std::make_shared<StagedCommunicator>(reference);
}

}  // namespace detail

}  // namespace cleave::inline v0
