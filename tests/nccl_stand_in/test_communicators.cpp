// Communicators: creation, splits, destruction, and refused calls.
#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("two ranks on one device are refused on every rank") {
  const Fresh fresh;
  const ncclUniqueId id = unique_id();
  run_threads(3, [&](int r) {
    CHECK_CUDA(cudaSetDevice(r % 2));
    ncclComm_t comm = nullptr;
    CHECK_RESULT(ncclCommInitRank(&comm, 3, id, r), ncclInvalidUsage);
    CHECK(std::string(ncclGetLastError(nullptr)).find("Duplicate GPU detected : rank ") == 0);
    CHECK_NCCL(ncclCommAbort(comm));  // the incomplete communicator
  });
}

TEST_CASE("a unique id is for one communicator, whose ranks agree on its size and join once") {
  Fresh fresh;
  fresh.time_out_early();
  ncclComm_t comm = nullptr, again = nullptr;
  const ncclUniqueId alone = unique_id(), two = unique_id();
  CHECK_NCCL(ncclCommInitRank(&comm, 1, alone, 0));
  CHECK_RESULT(ncclCommInitRank(&again, 1, alone, 0), ncclInvalidArgument);
  CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_RESULT(ncclCommInitRank(&comm, 2, two, 0), ncclSystemError);
  CHECK_RESULT(ncclCommInitRank(&again, 2, two, 0), ncclInvalidArgument);
  CHECK_RESULT(ncclCommInitRank(&again, 3, two, 1), ncclInvalidArgument);
  CHECK_RESULT(ncclCommInitRank(&again, 2, two, 2), ncclInvalidArgument);
  CHECK(again == nullptr);
  CHECK_NCCL(ncclCommAbort(comm));
  CHECK(take_faults() ==
        "nccl: ncclCommInitRank: the unique id is unknown, or has been used\n"
        "nccl: a call timed out waiting for other ranks\n"
        "nccl: ncclCommInitRank: rank 0 of 2 joins again, or not all ranks say 2\n"
        "nccl: ncclCommInitRank: rank 1 of 3 joins again, or not all ranks say 3\n"
        "nccl: ncclCommInitRank: rank 2 of 2\n");
}

TEST_CASE("a split groups by color and orders by key") {
  const Fresh fresh;
  for (const std::string world : {"world", "world2"})
    on_ranks(3, [&](Rank& rank) {
      // 0 and 2 together, in reverse; 1 alone
      ncclComm_t part = rank.split(rank.rank % 2, -rank.rank), second = rank.split();
      const bool alone = rank.rank == 1;
      int count = 0, place = -1;
      CHECK_NCCL(ncclCommCount(part, &count));
      CHECK_NCCL(ncclCommUserRank(part, &place));
      CHECK(count == (alone ? 1 : 2));
      CHECK(place == (rank.rank == 0 ? 1 : 0));
      const Buffer<int> own(std::vector{rank.rank}), all(std::size_t(count) + 0u);
      CHECK_NCCL(ncclAllGather(own, all, 1, ncclInt32, part, rank.stream));
      CHECK(all.read(rank.stream) == (alone ? std::vector{1} : std::vector{2, 0}));
      CHECK_NCCL(ncclCommUserRank(second, &place));
      CHECK(place == rank.rank);  // equal keys: in the parent's order
      CHECK(name_of(rank.comm) == world);
      CHECK(name_of(part) == world + "/split1");
      CHECK(name_of(second) == world + "/split2");
      CHECK_NCCL(ncclCommDestroy(second));
      CHECK_NCCL(ncclCommDestroy(part));
    });
}

TEST_CASE("a dead communicator is refused, and that is a fault") {
  const Fresh fresh;
  on_ranks(1, End::none, [](Rank& rank) {
    CHECK_NCCL(ncclCommDestroy(rank.comm));
    CHECK_RESULT(rank.sum(Buffer<int>(1)), ncclInvalidArgument);
    CHECK_RESULT(ncclCommDestroy(rank.comm), ncclInvalidArgument);
  });
  CHECK(take_faults() ==
        "nccl: ncclAllReduce: the communicator has gone, or never was\n"
        "nccl: ncclCommDestroy: the communicator has gone, or never was\n");
}

TEST_CASE("a destroy completes enqueued calls, and so does a finalize, after which none is taken") {
  for (const bool finalize : {false, true}) {
    const Fresh fresh;
    on_ranks(1, End::none, [&](Rank& rank) {
      const Buffer<int> from(std::vector{3}), to(1);
      CHECK_NCCL(rank.sum(from, to));
      CHECK_NCCL((finalize ? ncclCommFinalize : ncclCommDestroy)(rank.comm));
      CHECK_CUDA(cudaStreamQuery(rank.stream));
      CHECK(to.read(rank.stream) == std::vector{3});
      if (!finalize) return;
      CHECK_RESULT(rank.sum(from), ncclInvalidUsage);
      CHECK_NCCL(ncclCommDestroy(rank.comm));
    });
    CHECK(take_faults() ==
          (finalize ? "nccl: ncclAllReduce: the communicator has been finalized\n" : ""));
  }
}

TEST_CASE("an end of a communicator that makes a context on another device is a fault") {
  const Fresh fresh;
  on_ranks(2, [](Rank& rank) {
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_NCCL(ncclCommFinalize(rank.comm));
    CHECK_CUDA(cudaSetDevice(rank.rank));
  });
  CHECK(take_faults() ==
        "nccl: ncclCommFinalize: called with device 0, but world is on device 1\n");
}
