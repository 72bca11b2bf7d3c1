// Sends and receives, and groups of calls.
#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("sends and receives of a group are matched per pair of ranks, in their order") {
  const Fresh fresh;
  on_ranks(3, [](Rank& rank) {
    const int next = (rank.rank + 1) % 3, previous = (rank.rank + 2) % 3;
    const Buffer<int> from(std::vector{10 * rank.rank, 10 * rank.rank + 1, 10 * rank.rank + 2});
    const Buffer<int> to(3);
    group([&] {
      CHECK_NCCL(rank.send(from, next));
      CHECK_NCCL(rank.receive(to + 2, previous));
      CHECK_NCCL(rank.send(from + 1, next, 2));
      CHECK_NCCL(rank.receive(to, previous, 2));
    });
    CHECK(to.read(rank.stream) == std::vector{10 * previous + 1, 10 * previous + 2, 10 * previous});
  });
}

TEST_CASE("only ranks that exchange take part; self-sends and empty messages are matched") {
  const Fresh fresh;
  on_ranks(4, [](Rank& rank) {
    const Buffer<int> from(std::vector{rank.rank}), to(std::vector{-1});
    if (rank.rank == 0) CHECK_NCCL(rank.sum(nullptr, nullptr, 0));  // does nothing
    if (rank.rank == 0) CHECK_NCCL(rank.send(from, 2));
    if (rank.rank == 2) CHECK_NCCL(rank.receive(to, 0));
    if (rank.rank == 1)
      group([&] {
        CHECK_NCCL(rank.send(from, 1));
        CHECK_NCCL(rank.receive(to, 1));
        CHECK_NCCL(rank.send(nullptr, 3, 0));
      });
    if (rank.rank == 3) CHECK_NCCL(rank.receive(nullptr, 1, 0));
    CHECK(to.read(rank.stream) == std::vector{std::vector{-1, 1, 0, -1}[std::size_t(rank.rank)]});
  });
}

TEST_CASE("the calls of a group begin at its end; other communicators and groups are refused") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    Rank second = rank;
    second.comm = rank.split();
    const Buffer<int> a(std::vector{1}), b(std::vector{2});
    group([&] {
      CHECK_NCCL(rank.sum(a, b));
      CHECK(b.read(rank.stream) == std::vector{2});  // nothing has been enqueued
    });
    CHECK(b.read(rank.stream) == std::vector{1});
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(rank.sum(a, b));
    CHECK_RESULT(second.sum(a, b), ncclInvalidUsage);
    CHECK_RESULT(ncclGroupStart(), ncclInvalidUsage);
    ncclComm_t third = nullptr;
    CHECK_RESULT(ncclCommSplit(rank.comm, 0, 0, &third, nullptr), ncclInvalidUsage);
    CHECK_RESULT(ncclGroupEnd(), ncclInvalidUsage);
    CHECK_NCCL(ncclCommAbort(third));  // the incomplete communicator
    CHECK_NCCL(ncclCommDestroy(second.comm));
  });
  CHECK(take_faults() ==
        "nccl: ncclAllReduce: calls of a group are on one communicator and stream\n"
        "nccl: ncclGroupStart: groups within groups are not there\n"
        "nccl: a communicator is made within a group\n");
}

TEST_CASE("an error within a group is also returned by its end, and no call of it is done") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{5, 6});
    for (const bool planted : {false, true}) {
      CHECK_NCCL(ncclGroupStart());
      CHECK_NCCL(rank.sum(buffer, buffer + 1));
      if (planted) fail_call("ncclSend", 1, ncclInternalError);
      const ncclResult_t result = planted ? ncclInternalError : ncclInvalidArgument;
      CHECK_RESULT(rank.send(buffer, 7), result);
      CHECK_RESULT(ncclGroupEnd(), result);
      CHECK(std::string(ncclGetLastError(nullptr)) ==
            (planted ? "ncclSend: a planted error" : "ncclSend: there is no rank 7 among 1"));
    }
    CHECK(buffer.read(rank.stream) == std::vector{5, 6});
    CHECK_RESULT(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST_CASE("calls of one group that touch the same memory are a fault") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(8);
    group([&] {
      CHECK_NCCL(rank.send(buffer, 0, 4));
      CHECK_NCCL(rank.receive(buffer + 3, 0, 4));
    });
    rank.wait();
  });
  CHECK(take_faults() ==
        "nccl: calls of one group on world touch the same memory: ncclSend: 4 int32 to 0 and "
        "ncclRecv: 4 int32 from 0\n");
}
