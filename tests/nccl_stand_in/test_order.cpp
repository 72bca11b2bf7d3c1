// The order of execution: collectives among other work in streams, and the effect of a missing
// event.
#include <barrier>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

using cuda_stand_in::poisoned_int;

void set(cudaStream_t stream, int* to, int value) {
  CHECK_CUDA(cuda_stand_in::launch_on(stream, 1, 1, cuda_stand_in::assign, to, 1, value));
}

void order(cudaStream_t before, cudaStream_t after) {
  cudaEvent_t event;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventRecord(event, before));
  CHECK_CUDA(cudaStreamWaitEvent(after, event, 0));
  CHECK_CUDA(cudaEventDestroy(event));
}

}  // namespace

TEST_CASE("a collective is enqueued, and runs on all of its ranks when the host needs it") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(1);
    set(rank.stream, buffer.data, rank.rank + 1);
    CHECK_NCCL(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
    CHECK(buffer.read(rank.stream) == std::vector{3});
  });
}

TEST_CASE("without an event before the collective, its ranks receive stale data") {
  for (const bool with_event : {true, false}) {
    const Fresh fresh(2);
    on_ranks(2, [&](Rank& rank) {
      const cudaStream_t compute = rank.new_stream();
      const Buffer<int> from(1), to(1);
      set(compute, from.data, rank.rank + 1);
      if (with_event || rank.rank == 0) order(compute, rank.stream);
      CHECK_NCCL(ncclAllReduce(from.data, to.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
      CHECK(to.read(rank.stream) == std::vector{with_event ? 3 : int(1u + unsigned(poisoned_int))});
    });
  }
}

TEST_CASE("without an event after the collective, its result is stale") {
  for (const bool with_event : {true, false}) {
    const Fresh fresh(2);
    on_ranks(2, [&](Rank& rank) {
      const cudaStream_t compute = rank.new_stream();
      const Buffer<int> from(std::vector{rank.rank + 1}), to(1);
      CHECK_NCCL(ncclAllReduce(from.data, to.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
      if (with_event) order(rank.stream, compute);
      CHECK(to.read(compute) == std::vector{with_event ? 3 : poisoned_int});
      rank.wait();
    });
  }
}

TEST_CASE("an input may be overwritten after the collective in its stream") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> from(std::vector{rank.rank + 1}), to(1);
    CHECK_NCCL(ncclAllReduce(from.data, to.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
    set(rank.stream, from.data, 100);
    CHECK(to.read(rank.stream) == std::vector{3});
    CHECK(from.read(rank.stream) == std::vector{100});
  });
}

TEST_CASE("eager order gives the same values") {
  const Fresh fresh(3);
  cuda_stand_in::set_order(cuda_stand_in::Order::eager);
  on_ranks(3, [](Rank& rank) {
    const Buffer<int> from(std::vector{rank.rank}), all(3), sum(1);
    for (int i = 0; i < 10; ++i) {
      CHECK_NCCL(ncclAllGather(from.data, all.data, 1, ncclInt32, rank.comm, rank.stream));
      CHECK_NCCL(ncclAllReduce(from.data, sum.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
    }
    CHECK(all.read(rank.stream) == std::vector{0, 1, 2});
    CHECK(sum.read(rank.stream) == std::vector{3});
  });
}

TEST_CASE("two communicators used in different orders on one stream are a detected deadlock") {
  const Fresh fresh(2);
  const Impatient impatient;
  std::barrier here(2);
  on_ranks(2,
           [&](Rank& rank) {
             ncclComm_t second;
             CHECK_NCCL(ncclCommSplit(rank.comm, 0, rank.rank, &second, nullptr));
             const Buffer<int> a(std::vector{1}), b(std::vector{1});
             const auto reduce = [&](const Buffer<int>& buffer, ncclComm_t comm) {
               CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, comm,
                                        rank.stream));
             };
             if (rank.rank == 0) reduce(a, rank.comm), reduce(b, second);
             else reduce(b, second), reduce(a, rank.comm);
             until_pending(8);
             here.arrive_and_wait();
             CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchTimeout);
             here.arrive_and_wait();
             CHECK_NCCL(ncclCommAbort(second));
             CHECK_NCCL(ncclCommAbort(rank.comm));
           },
           {.destroy = false});
  CHECK(cuda_stand_in::take_faults().find("streams wait for each other, among them one for its "
                                          "ncclAllReduce on world") == 0);
}

TEST_CASE(
    "a collective that one rank does not join hangs until the time-out makes the device fail") {
  const Fresh fresh(2);
  const Impatient impatient;
  on_ranks(2, [](Rank& rank) {
    if (rank.rank == 1) return;
    const Buffer<int> buffer(1);
    CHECK_NCCL(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
    CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchTimeout);
  });
  fresh.expect_faults(
      "timed out waiting for work that was never enqueued: ncclAllReduce on world of rank 0\n");
}
