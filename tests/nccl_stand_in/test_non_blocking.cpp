// Non-blocking communicators: calls in progress, and calls allowed meanwhile.
#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("a communicator is in progress until all of its ranks have joined") {
  const Fresh fresh;
  const ncclUniqueId id = unique_id();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  Rank ranks[2];
  for (int r = 0; r < 2; ++r) {
    CHECK_CUDA(cudaSetDevice(r));
    CHECK_RESULT(ncclCommInitRankConfig(&ranks[r].comm, 2, id, r, &config), ncclInProgress);
    CHECK_RESULT(ranks[0].async_error(), r == 0 ? ncclInProgress : ncclSuccess);
  }
  CHECK_NCCL(ranks[1].settle());
  for (const int r : {1, 0}) {
    CHECK_CUDA(cudaSetDevice(r));
    CHECK_NCCL(ncclCommDestroy(ranks[r].comm));
  }
}

TEST_CASE("while a call is in progress, nothing has been enqueued, and others are refused") {
  const Fresh fresh;
  const auto body = [](Rank& rank) {
    const Buffer<int> from(std::vector{7}), to(std::vector{0});
    CHECK_RESULT(rank.sum(from, to), ncclInProgress);
    CHECK_RESULT(rank.sum(from), ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(rank.comm)) ==
          "ncclAllReduce: the previous call on this communicator has not returned ncclSuccess");
    CHECK(to.read(rank.stream) == std::vector{0});  // an event recorded now is too early
    CHECK_NCCL(rank.settle());
    CHECK(to.read(rank.stream) == std::vector{7});
  };
  on_ranks(1, End::destroy, body, false);
}

TEST_CASE("a split gives the child when the parent is ready again, not when it returns success") {
  const Fresh fresh;
  const auto body = [](Rank& rank) {
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(rank.comm, 0, 0, &child, nullptr));
    CHECK(child == nullptr);
    CHECK_NCCL(rank.settle());
    int count = 0;
    CHECK_NCCL(ncclCommCount(child, &count));
    CHECK(count == 2);
    CHECK_NCCL(ncclCommDestroy(child));
  };
  on_ranks(2, End::destroy, body, false);
}
