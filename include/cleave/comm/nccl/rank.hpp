// State that the NCCL communicators of a rank share, and the creation of communicators.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/comm/nccl/nccl_failure_detector.hpp>
#include <cleave/comm/nccl/nccl_handle.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/core/cuda/capture_mode.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

namespace cleave::inline v0::detail {

/// The version of the NCCL library. NCCL connects only ranks with the same (2.28.9 `src/init.cc`,
/// "Mismatched NCCL version detected").
///
/// Before this first call of NCCL, makes kernels of several communicators of a device, e.g. those
/// of the main and of the side stream, run in the order in which the host issues them, unless the
/// user's environment says otherwise. Otherwise they may overlap, and two ranks whose
/// multiprocessors are occupied by kernels of different communicators deadlock.
///
/// NCCL also must not register buffers by itself: it requires that the buffers of all ranks are
/// registered if those of one are (user guide, "User Buffer Registration"), but a redistribution
/// may send a tensor to a temporary, and which ones NCCL finds registered can differ.
///
/// @throws Error unless it has the program's major version and is no older
inline int verified_nccl_version() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    setenv("NCCL_LOCAL_REGISTER", "0", 0);
    setenv("NCCL_GRAPH_REGISTER", "0", 0);
  });
  int version = 0;
  const ncclResult_t status = ncclGetVersion(&version);
  if (status == ncclSuccess && version >= NCCL_VERSION_CODE && version / 10000 == NCCL_MAJOR)
    return version;
  throw Error("nccl", "the program was compiled for NCCL " + std::to_string(NCCL_VERSION_CODE) +
                          " and runs with " + std::to_string(version));
}

/// State that the NCCL communicators of a rank share.
struct NcclRank {
  /// @throws Error if the NCCL library is not the program's
  explicit NcclRank(const RankState& state)
      : detector(std::make_shared<NcclFailureDetector>(state)) {
    cuda::PinnedPool::get().prepare();  // pinning waits for kernels, which may wait for other ranks
  }

  /// The state of a rank. The first call, which precedes all of NCCL, makes it and installs its
  /// failure detector in the thread.
  static std::shared_ptr<NcclRank> of(RankState& state) {
    return state.slots->get<NcclRank>([&] {
      auto rank = std::make_shared<NcclRank>(state);
      cuda::detail::detector_slot() = rank->detector;
      return rank;
    });
  }

  int version = verified_nccl_version();  ///< of the library; the same on all ranks
  std::shared_ptr<NcclFailureDetector> detector;
};

/// Makes a communicator, which takes memory from the device, not from cleave's pool: the pool keeps
/// none that is idle.
/// @param f  (ncclComm_t*) -> ncclResult_t: calls NCCL to make it, which waits for all ranks
/// @throws Error if that fails; a partly made communicator is aborted
template <class F>
std::shared_ptr<NcclHandle> make_nccl(NcclRank& rank, const char* function, F f) {
  const auto handle = std::make_shared<NcclHandle>();
  {
    const CaptureMode mode(cudaStreamCaptureModeRelaxed);  // not part of a capture
    cuda::detail::trim_pools();
  }
  NcclOperation operation{.number = 1};
  operation.set_name(function);
  rank.detector->enroll(handle);
  rank.detector->begins(operation);
  ncclResult_t status = ncclSuccess;
  rank.detector->during_call([&] { status = handle->make(f); });
  if (status == ncclSuccess && handle->get() != nullptr) return handle;
  rank.detector->discard(handle);
  rank.detector->verify();
  // a non-blocking communicator is not ready yet
  throw Error("nccl", nccl_error_string(status == ncclSuccess ? ncclInProgress : status, function,
                                        nullptr));
}

/// Makes the communicator of a group's ranks.
/// @collective every rank of the group
/// @throws Error if NCCL cannot connect them
inline std::shared_ptr<NcclHandle> connect_by_nccl(NcclRank& rank, Communicator& host) {
  ncclUniqueId id{};
  if (host.rank() == 0)
    if (const ncclResult_t status = ncclGetUniqueId(&id); status != ncclSuccess)
      throw Error("nccl", nccl_error_string(status, "ncclGetUniqueId", nullptr));
  Unobserved::run(host, broadcast_call(bytes_of(id), "nccl"));
  return make_nccl(rank, "ncclCommInitRank", [&](ncclComm_t* comm) {
    return ncclCommInitRank(comm, host.size(), id, host.rank());
  });
}

}  // namespace cleave::inline v0::detail
