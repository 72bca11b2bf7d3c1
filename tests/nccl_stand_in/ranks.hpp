// Shared by the tests of the stand-in for NCCL: ranks as threads, each with a device, a stream and
// a communicator.
#pragma once

#include <chrono>
#include <memory>
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

/// Starts a test with machine and library in their initial state. The test must leave no fault.
class Fresh {
 public:
  explicit Fresh(int devices) {
    cuda_stand_in::set_devices(devices);
    cudaSetDevice(0);
    start_again();
  }
  ~Fresh() {
    CHECK(cuda_stand_in::take_faults() == "");
    CHECK(live_communicators() == 0);
    start_again();
    cuda_stand_in::set_devices(1);
    cudaSetDevice(0);
  }
  Fresh(const Fresh&) = delete;  // there is one machine

  /// CHECKs the faults so far, which the test has provoked.
  void expect_faults(const std::string& text) const { CHECK(cuda_stand_in::take_faults() == text); }

 private:
  static void start_again() {
    reset();
    cuda_stand_in::set_order(cuda_stand_in::Order::lazy);
  }
};

/// For tests of hangs: the machine times out after a second.
class Impatient {
 public:
  Impatient() { settings().timeout = std::chrono::seconds(1); }
  ~Impatient() { settings().timeout = before_; }
  Impatient(const Impatient&) = delete;  // there is one machine

 private:
  static cuda_stand_in::Settings& settings() { return cuda_stand_in::Machine::get().settings; }
  std::chrono::seconds before_ = settings().timeout;
};

/// Waits until other threads have enqueued that many operations.
inline void until_pending(std::size_t operations) {
  while (cuda_stand_in::pending_operations() < operations) std::this_thread::yield();
}

/// A rank, as seen by its thread.
struct Rank {
  int rank = 0;
  int size = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  cudaStream_t new_stream() const {
    cudaStream_t made = nullptr;
    CHECK_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }
  void wait() const { CHECK_CUDA(cudaStreamSynchronize(stream)); }
};

/// Memory of the current device. Not freed, because a free waits.
template <class T>
struct Buffer : cuda_stand_in::Array<T> {
  using cuda_stand_in::Array<T>::Array;
  ~Buffer() { this->data = nullptr; }
};

inline void run_threads(int count, const auto& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

/// Polls until the communicator is ready or has failed.
inline ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress)
    if (const ncclResult_t asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess)
      return asked;
  return state;
}

struct Options {
  bool blocking = true;
  bool destroy = true;
};

/// Runs body(Rank&) on a thread for each of `size` ranks; rank r uses device r.
inline void on_ranks(int size, const auto& body, Options options = {}) {
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  run_threads(size, [&](int r) {
    CHECK_CUDA(cudaSetDevice(r));
    Rank rank{.rank = r, .size = size};
    rank.stream = rank.new_stream();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = options.blocking ? 1 : 0;
    const ncclResult_t made = ncclCommInitRankConfig(&rank.comm, size, id, r, &config);
    CHECK_RESULT(made, options.blocking ? ncclSuccess : ncclInProgress);
    CHECK_NCCL(settle(rank.comm));
    body(rank);
    if (options.destroy) CHECK_NCCL(ncclCommDestroy(rank.comm));
  });
}

}  // namespace nccl_stand_in
