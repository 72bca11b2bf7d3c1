// What the communicators of a rank share, and how NCCL is made to make one.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/cuda/nccl_arena.hpp>
#include <cleave/comm/cuda/nccl_types.hpp>
#include <cleave/comm/cuda/nccl_watch.hpp>
#include <cleave/comm/cuda/unobserved.hpp>
#include <cleave/core/deadline.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::detail {

/// What the communicators of a rank share.
struct NcclRank {
  explicit NcclRank(const RankState& state)
      : arena(std::make_shared<NcclArena>(state.timeout_seconds)),
        watch(std::make_shared<NcclWatch>(state)) {}

  /// The rank's, made at the first call; its watch becomes the calling thread's.
  static std::shared_ptr<NcclRank> of(RankState& state) {
    if (state.device_watch == nullptr) {
      state.device_watch = std::make_shared<NcclRank>(state);
      cuda::detail::watch_slot() = static_cast<NcclRank*>(state.device_watch.get())->watch;
    }
    return std::static_pointer_cast<NcclRank>(state.device_watch);
  }

  std::shared_ptr<NcclArena> arena;
  std::shared_ptr<NcclWatch> watch;  ///< goes first: its aborts end the use of the memory
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

/// How all communicators are: their calls return before they are done.
inline ncclConfig_t nccl_config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

/// Waits until what was begun on a communicator has been done; whoever began it aborts it if this
/// throws.
inline void settle(NcclRank& rank, const char* function, ncclComm_t comm) {
  const auto deadline = deadline_after(rank.watch->timeout());
  for (;;) {
    const ncclResult_t status = state_of(comm);
    if (status == ncclSuccess) return;
    if (is_failure(status)) throw Error("nccl", nccl_text(status, function, comm));
    rank.watch->verify();
    if (std::chrono::steady_clock::now() > deadline)
      throw Error("nccl", function + (" did not end" + within(rank.watch->timeout())));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// A communicator that does not exist before the call.
/// @param f  (ncclComm_t*) -> ncclResult_t: has NCCL begin to make it
/// @throws Error if it is not made; what there is of it is aborted
template <class F>
ncclComm_t make_nccl(NcclRank& rank, const char* function, F f) {
  const auto made = std::make_shared<ncclComm_t>(nullptr);  // until it is done, or aborted
  try {
    if (const ncclResult_t status = f(made.get()); is_failure(status))
      throw Error("nccl", nccl_text(status, function, nullptr));
    settle(rank, function, *made);
  } catch (...) {
    rank.watch->discard(made);
    throw;
  }
  return *made;
}

/// The one of a group's ranks.
/// @collective every rank of the group
/// @throws Error if NCCL cannot connect them
inline ncclComm_t connect_by_nccl(NcclRank& rank, Communicator& host) {
  ncclUniqueId id{};
  if (host.rank() == 0)
    if (const ncclResult_t status = ncclGetUniqueId(&id); status != ncclSuccess)
      throw Error("nccl", nccl_text(status, "ncclGetUniqueId", nullptr));
  said_by_first(host, &id, sizeof id, "nccl");
  return make_nccl(rank, "ncclCommInitRankConfig", [&](ncclComm_t* comm) {
    ncclConfig_t config = nccl_config();
    return ncclCommInitRankConfig(comm, host.size(), id, host.rank(), &config);
  });
}

}  // namespace cleave::detail
