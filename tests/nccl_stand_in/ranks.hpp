// Shared by the tests of the stand-in for NCCL: ranks as threads, each with a device, a stream and
// a communicator.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <nccl.h>

#include "../cuda_stand_in/device.hpp"
#include "cuda_stand_in/machine.hpp"
#include "nccl_stand_in/stand_in.hpp"

/// CHECKs the result of a call.
#define CHECK_RESULT(call, result) \
  CHECK(std::string(ncclGetErrorString(call)) == ncclGetErrorString(result))
/// CHECKs that a call of NCCL succeeds, and names the error if it does not.
#define CHECK_NCCL(call) CHECK_RESULT(call, ncclSuccess)

namespace nccl_stand_in {

using cuda_stand_in::take_faults;

/// Starts a test with machine and library in their initial state, with four devices. The test must
/// leave no fault.
class Fresh : public cuda_stand_in::Fresh {
 public:
  Fresh() { reset(); }
  ~Fresh() {
    CHECK(take_faults() == "");
    CHECK(live_communicators() == 0);
    reset();
    timeout() = before_;
  }

  /// For tests of hangs: the machine times out after a second.
  void time_out_early() { timeout() = std::chrono::seconds(1); }

 private:
  static std::chrono::seconds& timeout() { return cuda_stand_in::Machine::get().settings.timeout; }
  std::chrono::seconds before_ = timeout();
};

/// Waits until other threads have enqueued that many operations.
inline void until_pending(std::size_t operations) {
  while (cuda_stand_in::pending_operations() < operations) std::this_thread::yield();
}

/// Memory of the current device. Not freed, because a free waits.
template <class T>
struct Buffer : cuda_stand_in::Array<T> {
  using cuda_stand_in::Array<T>::Array;
  ~Buffer() { this->data = nullptr; }
};

inline cudaStream_t new_stream() {
  cudaStream_t made = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return made;
}

/// A rank, as seen by its thread.
struct Rank {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  /// Sums integers over the ranks.
  ncclResult_t sum(const int* from, int* to, std::size_t count = 1) const {
    return ncclAllReduce(from, to, count, ncclInt32, ncclSum, comm, stream);
  }
  /// Sums an integer in place.
  ncclResult_t sum(const Buffer<int>& buffer) const { return sum(buffer.data, buffer.data); }
  /// Broadcasts bytes of rank 0.
  ncclResult_t broadcast(const void* from, void* to, std::size_t bytes) const {
    return ncclBroadcast(from, to, bytes, ncclUint8, 0, comm, stream);
  }
  ncclResult_t send(const int* from, int to, std::size_t count = 1) const {
    return ncclSend(from, count, ncclInt32, to, comm, stream);
  }
  ncclResult_t receive(int* to, int from, std::size_t count = 1) const {
    return ncclRecv(to, count, ncclInt32, from, comm, stream);
  }
  ncclComm_t split(int color = 0, int key = 0) const {
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(comm, color, key, &child, nullptr));
    return child;
  }
  ncclResult_t async_error() const {
    ncclResult_t error = ncclSuccess;
    CHECK_NCCL(ncclCommGetAsyncError(comm, &error));
    return error;
  }
  /// Polls until the communicator is ready or has failed.
  ncclResult_t settle() const {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) state = async_error();
    return state;
  }
  void wait() const { CHECK_CUDA(cudaStreamSynchronize(stream)); }
  /// CHECKs that the rank's operations do not end.
  void hangs() const {
    for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  }
};

inline void run_threads(int count, const auto& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

inline ncclUniqueId unique_id() {
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  return id;
}

/// Calls that are made together.
inline void group(const auto& calls) {
  CHECK_NCCL(ncclGroupStart());
  calls();
  CHECK_NCCL(ncclGroupEnd());
}

/// What becomes of the ranks' communicators after the body.
enum class End { destroy, abort, none };

/// Runs body(Rank&) on a thread for each of `size` ranks; rank r uses device r.
inline void on_ranks(int size, End end, const auto& body, bool blocking = true) {
  const ncclUniqueId id = unique_id();
  run_threads(size, [&](int r) {
    CHECK_CUDA(cudaSetDevice(r));
    Rank rank{.rank = r, .stream = new_stream()};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    CHECK_RESULT(ncclCommInitRankConfig(&rank.comm, size, id, r, &config),
                 blocking ? ncclSuccess : ncclInProgress);
    CHECK_NCCL(rank.settle());
    body(rank);
    if (end == End::destroy) CHECK_NCCL(ncclCommDestroy(rank.comm));
    if (end == End::abort) CHECK_NCCL(ncclCommAbort(rank.comm));
  });
}

inline void on_ranks(int size, const auto& body) { on_ranks(size, End::destroy, body); }

}  // namespace nccl_stand_in
