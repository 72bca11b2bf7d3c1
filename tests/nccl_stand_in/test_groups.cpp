// Sends and receives, and groups of calls.
#include <barrier>

#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("sends and receives of a group are matched per pair of ranks, in their order") {
  const Fresh fresh(3);
  on_ranks(3, [](Rank& rank) {
    const int next = (rank.rank + 1) % 3, previous = (rank.rank + 2) % 3;
    const Buffer<int> from(std::vector{10 * rank.rank, 10 * rank.rank + 1, 10 * rank.rank + 2});
    const Buffer<int> to(3);
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(from.data, 1, ncclInt32, next, rank.comm, rank.stream));
    CHECK_NCCL(ncclRecv(to.data + 2, 1, ncclInt32, previous, rank.comm, rank.stream));
    CHECK_NCCL(ncclSend(from.data + 1, 2, ncclInt32, next, rank.comm, rank.stream));
    CHECK_NCCL(ncclRecv(to.data, 2, ncclInt32, previous, rank.comm, rank.stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK(to.read(rank.stream) == std::vector{10 * previous + 1, 10 * previous + 2, 10 * previous});
  });
}

TEST_CASE("only ranks that exchange take part; self-sends and empty messages are matched") {
  const Fresh fresh(4);
  on_ranks(4, [](Rank& rank) {
    const Buffer<int> from(std::vector{rank.rank}), to(std::vector{-1});
    if (rank.rank == 0) CHECK_NCCL(ncclSend(from.data, 1, ncclInt32, 2, rank.comm, rank.stream));
    if (rank.rank == 2) CHECK_NCCL(ncclRecv(to.data, 1, ncclInt32, 0, rank.comm, rank.stream));
    if (rank.rank == 1) {
      CHECK_NCCL(ncclGroupStart());
      CHECK_NCCL(ncclSend(from.data, 1, ncclInt32, 1, rank.comm, rank.stream));
      CHECK_NCCL(ncclRecv(to.data, 1, ncclInt32, 1, rank.comm, rank.stream));
      CHECK_NCCL(ncclSend(nullptr, 0, ncclInt32, 3, rank.comm, rank.stream));
      CHECK_NCCL(ncclGroupEnd());
    }
    if (rank.rank == 3) CHECK_NCCL(ncclRecv(nullptr, 0, ncclInt32, 1, rank.comm, rank.stream));
    CHECK(to.read(rank.stream) == std::vector{std::vector{-1, 1, 0, -1}[std::size_t(rank.rank)]});
  });
}

TEST_CASE("two ranks that send to each other outside of a group hang") {
  const Fresh fresh(2);
  const Impatient impatient;
  std::barrier here(2);
  on_ranks(2,
           [&](Rank& rank) {
             const Buffer<int> buffer(2);
             const int other = 1 - rank.rank;
             CHECK_NCCL(ncclSend(buffer.data, 1, ncclInt32, other, rank.comm, rank.stream));
             CHECK_NCCL(ncclRecv(buffer.data + 1, 1, ncclInt32, other, rank.comm, rank.stream));
             until_pending(8);
             here.arrive_and_wait();
             CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchTimeout);
             here.arrive_and_wait();
             CHECK_NCCL(ncclCommAbort(rank.comm));
           },
           {.destroy = false});
  CHECK(cuda_stand_in::take_faults().find("streams wait for each other") == 0);
}

TEST_CASE("the calls of a group begin at its end; other communicators and groups are refused") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    ncclComm_t second, third;
    CHECK_NCCL(ncclCommSplit(rank.comm, 0, rank.rank, &second, nullptr));
    const Buffer<int> a(std::vector{1}), b(std::vector{2});
    const auto copy = [&](ncclComm_t comm) {
      return ncclBroadcast(a.data, b.data, 1, ncclInt32, 0, comm, rank.stream);
    };
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(copy(rank.comm));
    CHECK(b.read(rank.stream) == std::vector{2});  // nothing has been enqueued
    CHECK_NCCL(ncclGroupEnd());
    CHECK(b.read(rank.stream) == std::vector{1});
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(copy(rank.comm));
    CHECK_RESULT(copy(second), ncclInvalidUsage);
    CHECK_RESULT(ncclGroupStart(), ncclInvalidUsage);
    CHECK_RESULT(ncclCommSplit(rank.comm, 0, 0, &third, nullptr), ncclInvalidUsage);
    CHECK_RESULT(ncclGroupEnd(), ncclInvalidUsage);
    CHECK_NCCL(ncclCommAbort(third));  // the incomplete communicator
    CHECK_NCCL(ncclCommDestroy(second));
  });
  fresh.expect_faults(
      "nccl: ncclBroadcast: calls of a group are on one communicator and stream\n"
      "nccl: ncclGroupStart: groups within groups are not there\n"
      "nccl: a communicator is made within a group\n");
}

TEST_CASE("an error within a group is also returned by its end, and no call of it is done") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{5, 6});
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(
        ncclBroadcast(buffer.data, buffer.data + 1, 1, ncclInt32, 0, rank.comm, rank.stream));
    CHECK_RESULT(ncclSend(buffer.data, 1, ncclInt32, 7, rank.comm, rank.stream),
                 ncclInvalidArgument);
    CHECK_RESULT(ncclGroupEnd(), ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(nullptr)) == "ncclSend: there is no rank 7 among 1");
    CHECK(buffer.read(rank.stream) == std::vector{5, 6});
    CHECK_RESULT(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST_CASE("calls of one group that touch the same memory are a fault") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(8);
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(buffer.data, 4, ncclInt32, 0, rank.comm, rank.stream));
    CHECK_NCCL(ncclRecv(buffer.data + 3, 4, ncclInt32, 0, rank.comm, rank.stream));
    CHECK_NCCL(ncclGroupEnd());
    rank.wait();
  });
  fresh.expect_faults(
      "nccl: calls of one group on world touch the same memory: ncclSend: 4 int32 to 0 and "
      "ncclRecv: 4 int32 from 0\n");
}
