// Communicators: creation, splits, destruction, and refused calls.
#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("a communicator knows its ranks and names") {
  const Fresh fresh(3);
  for (const char* name : {"world", "world2"}) {
    on_ranks(3, [&](Rank& rank) {
      int count = 0, place = -1;
      CHECK_NCCL(ncclCommCount(rank.comm, &count));
      CHECK_NCCL(ncclCommUserRank(rank.comm, &place));
      CHECK(count == 3);
      CHECK(place == rank.rank);
      CHECK(name_of(rank.comm) == name);
    });
  }
}

TEST_CASE("the version is the header's, or the one that a test sets") {
  const Fresh fresh(1);
  int version = 0;
  CHECK_NCCL(ncclGetVersion(&version));
  CHECK(version == NCCL_VERSION_CODE);
  set_version(22000);
  CHECK_NCCL(ncclGetVersion(&version));
  CHECK(version == 22000);
}

TEST_CASE("two ranks on one device are refused on every rank") {
  const Fresh fresh(2);
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  run_threads(3, [&](int r) {
    CHECK_CUDA(cudaSetDevice(r % 2));
    ncclComm_t comm = nullptr;
    CHECK_RESULT(ncclCommInitRank(&comm, 3, id, r), ncclInvalidUsage);
    CHECK(comm != nullptr);  // the incomplete communicator must be aborted
    CHECK_NCCL(ncclCommAbort(comm));
    CHECK(std::string(ncclGetLastError(nullptr)) ==
          "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 0");
  });
}

TEST_CASE("a unique id is for one communicator, whose ranks agree on its size") {
  const Fresh fresh(2);
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
  ncclComm_t again = nullptr;
  CHECK_RESULT(ncclCommInitRank(&again, 1, id, 0), ncclInvalidArgument);
  CHECK(again == nullptr);
  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_NCCL(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  CHECK_RESULT(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  CHECK_RESULT(ncclCommInitRankConfig(&again, 2, id, 0, &config), ncclInvalidArgument);
  CHECK_RESULT(ncclCommInitRankConfig(&again, 3, id, 1, &config), ncclInvalidArgument);
  CHECK_RESULT(ncclCommInitRankConfig(&again, 2, id, 2, &config), ncclInvalidArgument);
  ncclConfig_t uninitialised{};
  CHECK_RESULT(ncclCommInitRankConfig(&again, 2, id, 1, &uninitialised), ncclInvalidArgument);
  CHECK_NCCL(ncclCommAbort(comm));
  fresh.expect_faults(
      "nccl: ncclCommInitRank: the unique id is unknown, or has been used\n"
      "nccl: ncclCommInitRankConfig: there are two ranks 0\n"
      "nccl: ncclCommInitRankConfig: rank 1 says 3 ranks, others 2\n");
}

TEST_CASE("a rank missing from the creation of a communicator is a fault at the time-out") {
  const Fresh fresh(1);
  const Impatient impatient;
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  CHECK_RESULT(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);
  CHECK_NCCL(ncclCommAbort(comm));
  fresh.expect_faults("nccl: a call timed out waiting for other ranks\n");
}

TEST_CASE("a split groups by color and orders by key") {
  const Fresh fresh(3);
  on_ranks(3, [&](Rank& rank) {
    ncclComm_t part = nullptr, second = nullptr;  // 0 and 2 together, in reverse; 1 alone
    CHECK_NCCL(ncclCommSplit(rank.comm, rank.rank % 2, -rank.rank, &part, nullptr));
    const bool alone = rank.rank == 1;
    int count = 0, place = -1;
    CHECK_NCCL(ncclCommCount(part, &count));
    CHECK_NCCL(ncclCommUserRank(part, &place));
    CHECK(count == (alone ? 1 : 2));
    CHECK(place == (rank.rank == 0 ? 1 : 0));
    const Buffer<int> own(std::vector{rank.rank}), all(std::size_t(count) + 0u);
    CHECK_NCCL(ncclAllGather(own.data, all.data, 1, ncclInt32, part, rank.stream));
    CHECK(all.read(rank.stream) == (alone ? std::vector{1} : std::vector{2, 0}));
    CHECK_NCCL(ncclCommSplit(rank.comm, 0, 0, &second, nullptr));
    CHECK_NCCL(ncclCommUserRank(second, &place));
    CHECK(place == rank.rank);  // equal keys: in the parent's order
    CHECK(name_of(part) == name_of(rank.comm) + "/split1");
    CHECK(name_of(second) == name_of(rank.comm) + "/split2");
    CHECK_NCCL(ncclCommDestroy(second));
    CHECK_NCCL(ncclCommDestroy(part));
  });
}

TEST_CASE("a dead communicator is refused, and that is a fault") {
  const Fresh fresh(1);
  on_ranks(1,
           [](Rank& rank) {
             CHECK_NCCL(ncclCommDestroy(rank.comm));
             const Buffer<int> buffer(1);
             CHECK_RESULT(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream),
                          ncclInvalidArgument);
             CHECK_RESULT(ncclCommDestroy(rank.comm), ncclInvalidArgument);
             CHECK_RESULT(ncclCommCount(nullptr, nullptr), ncclInvalidArgument);
             CHECK_NCCL(ncclCommDestroy(nullptr));
           },
           {.destroy = false});
  fresh.expect_faults(
      "nccl: ncclAllReduce: the communicator has gone, or never was\n"
      "nccl: ncclCommDestroy: the communicator has gone, or never was\n");
}

TEST_CASE("a destroy completes enqueued calls, and so does a finalize") {
  for (const bool finalize : {false, true}) {
    const Fresh fresh(2);
    on_ranks(2,
             [&](Rank& rank) {
               const Buffer<int> buffer(std::vector{rank.rank + 1});
               CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream));
               if (finalize) CHECK_NCCL(ncclCommFinalize(rank.comm));
               CHECK_NCCL(ncclCommDestroy(rank.comm));
               CHECK_CUDA(cudaStreamQuery(rank.stream));
               CHECK(buffer.read(rank.stream) == std::vector{3});
             },
             {.destroy = false});
  }
}

TEST_CASE("a finalized communicator takes no more calls") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    CHECK_NCCL(ncclCommFinalize(rank.comm));
    const Buffer<int> buffer(1);
    CHECK_RESULT(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream),
        ncclInvalidUsage);
  });
  fresh.expect_faults("nccl: ncclAllReduce: the communicator has been finalized\n");
}

TEST_CASE("an end of a communicator that makes a context on another device is a fault") {
  const Fresh fresh(2);
  on_ranks(2,
           [](Rank& rank) {
             CHECK_CUDA(cudaSetDevice(0));
             CHECK_NCCL(ncclCommFinalize(rank.comm));
             CHECK_CUDA(cudaSetDevice(rank.rank));
             CHECK_NCCL(ncclCommDestroy(rank.comm));
           },
           {.destroy = false});
  fresh.expect_faults("nccl: ncclCommFinalize: called with device 0, but world is on device 1\n");
}
