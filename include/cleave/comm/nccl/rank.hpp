// What the communicators of a rank share, and how NCCL is made to make one.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/device/unobserved.hpp>
#include <cleave/comm/nccl/arena.hpp>
#include <cleave/comm/nccl/failure_detector.hpp>
#include <cleave/comm/nccl/handle.hpp>
#include <cleave/comm/nccl/types.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

namespace cleave::detail {

/// What the communicators of a rank share.
struct NcclRank {
  explicit NcclRank(const RankState& state)
      : arena(std::make_shared<NcclArena>(state.timeout_seconds)),
        detector(std::make_shared<NcclFailureDetector>(state)) {
    cuda::PinnedPool::get().prepare();  // pinning waits for kernels, which may wait for other ranks
  }

  /// The rank's, made at the first call; its failure detector becomes the calling thread's.
  static std::shared_ptr<NcclRank> of(RankState& state) {
    if (state.device_detector == nullptr) {
      state.device_detector = std::make_shared<NcclRank>(state);
      cuda::detail::detector_slot() = static_cast<NcclRank*>(state.device_detector.get())->detector;
    }
    return std::static_pointer_cast<NcclRank>(state.device_detector);
  }

  std::shared_ptr<NcclArena> arena;
  std::shared_ptr<NcclFailureDetector> detector;  ///< goes first: its aborts end the use of memory
};

/// Before the first call of NCCL: kernels of several communicators of a device, e.g. those of the
/// main and of the side stream, run in the order in which the host issues them, unless the user's
/// environment says otherwise. Without this they may overlap, and two ranks that each give their
/// multiprocessors to another one's kernel wait for each other.
inline void order_communicators() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0); });
}

/// @throws Error unless the library is at least what this program was compiled for
inline void verify_nccl_version() {
  order_communicators();
  int version = 0;
  const ncclResult_t status = ncclGetVersion(&version);
  if (status == ncclSuccess && version >= NCCL_VERSION_CODE && version / 10000 == NCCL_MAJOR)
    return;
  throw Error("nccl", "the program was compiled for NCCL " + std::to_string(NCCL_VERSION_CODE) +
                          " and runs with " + std::to_string(version));
}

/// A communicator that does not exist before the call.
/// @param f  (ncclComm_t*) -> ncclResult_t: has NCCL make it, which waits for all ranks
/// @throws Error if it is not made; what there is of it is aborted
template <class F>
std::shared_ptr<NcclHandle> make_nccl(NcclRank& rank, const char* function, F f) {
  const auto handle = std::make_shared<NcclHandle>();
  NcclOperation operation{.number = 1};
  operation.set_name(function);
  rank.detector->enroll(handle);
  rank.detector->begins(operation);
  ncclResult_t status = ncclSuccess;
  rank.detector->during_call([&] { status = handle->make(f); });
  if (status == ncclSuccess && handle->get() != nullptr) return handle;
  rank.detector->discard(handle);
  rank.detector->verify();
  // one that does not block gives nothing yet
  throw Error("nccl",
              nccl_text(status == ncclSuccess ? ncclInProgress : status, function, nullptr));
}

/// The one of a group's ranks.
/// @collective every rank of the group
/// @throws Error if NCCL cannot connect them
inline std::shared_ptr<NcclHandle> connect_by_nccl(NcclRank& rank, Communicator& host) {
  ncclUniqueId id{};
  if (host.rank() == 0)
    if (const ncclResult_t status = ncclGetUniqueId(&id); status != ncclSuccess)
      throw Error("nccl", nccl_text(status, "ncclGetUniqueId", nullptr));
  bcast(host, &id, sizeof id, "nccl");
  return make_nccl(rank, "ncclCommInitRank", [&](ncclComm_t* comm) {
    return ncclCommInitRank(comm, host.size(), id, host.rank());
  });
}

}  // namespace cleave::detail
