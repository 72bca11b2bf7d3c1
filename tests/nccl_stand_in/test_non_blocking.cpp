// Non-blocking communicators: calls in progress, and calls allowed meanwhile.
#include <atomic>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
  return state;
}

constexpr Options non_blocking{.blocking = false};

}  // namespace

TEST_CASE("a communicator is in progress until all of its ranks have joined") {
  const Fresh fresh(2);
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  std::atomic<bool> seen = false;
  run_threads(2, [&](int r) {
    CHECK_CUDA(cudaSetDevice(r));
    if (r == 1)
      while (!seen) std::this_thread::yield();
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CHECK_RESULT(ncclCommInitRankConfig(&comm, 2, id, r, &config), ncclInProgress);
    if (r == 0) {
      for (int i = 0; i < 10; ++i) CHECK_RESULT(state_of(comm), ncclInProgress);
      seen = true;
    }
    CHECK_NCCL(settle(comm));
    CHECK_NCCL(ncclCommDestroy(comm));
  });
}

TEST_CASE(
    "while a call is in progress, nothing has been enqueued: an event recorded now is too "
    "early") {
  const Fresh fresh(1);
  on_ranks(
      1,
      [](Rank& rank) {
        const Buffer<int> from(std::vector{7}), to(std::vector{0});
        CHECK_RESULT(
            ncclAllReduce(from.data, to.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream),
            ncclInProgress);
        CHECK(to.read(rank.stream) == std::vector{0});
        CHECK_NCCL(settle(rank.comm));
        CHECK(to.read(rank.stream) == std::vector{7});
      },
      non_blocking);
}

TEST_CASE("while a call is in progress, others are refused, and the communicator has failed") {
  const Fresh fresh(1);
  on_ranks(1,
           [](Rank& rank) {
             const Buffer<int> buffer(1);
             CHECK_RESULT(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream),
                          ncclInProgress);
             int count = 0;
             CHECK_RESULT(ncclCommCount(rank.comm, &count), ncclInvalidArgument);
             CHECK_RESULT(ncclCommDestroy(rank.comm), ncclInvalidArgument);
             CHECK_RESULT(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream),
                          ncclInvalidArgument);
             CHECK(std::string(ncclGetLastError(rank.comm)) ==
                   "ncclAllReduce: the previous call on this communicator has not returned "
                   "ncclSuccess");
             CHECK_RESULT(state_of(rank.comm), ncclInvalidArgument);
             CHECK_NCCL(ncclCommAbort(rank.comm));
             rank.wait();
           },
           {.blocking = false, .destroy = false});
}

TEST_CASE("a split gives the child when the parent is ready again, not when it returns success") {
  const Fresh fresh(2);
  on_ranks(
      2,
      [](Rank& rank) {
        ncclComm_t child = nullptr;
        CHECK_NCCL(ncclCommSplit(rank.comm, 0, 0, &child, nullptr));
        CHECK(child == nullptr);
        CHECK_NCCL(settle(rank.comm));
        int count = 0;
        CHECK_NCCL(ncclCommCount(child, &count));
        CHECK(count == 2);
        CHECK_NCCL(ncclCommDestroy(child));
      },
      non_blocking);
}
