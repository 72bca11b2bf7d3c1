// The order of execution: collectives among other work in streams, and the effect of a missing
// event.
#include <barrier>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

using cuda_stand_in::poisoned_int, cuda_stand_in::set_to;

void order(cudaStream_t before, cudaStream_t after) {
  const cuda_stand_in::Event event;
  CHECK_CUDA(cudaEventRecord(event, before));
  CHECK_CUDA(cudaStreamWaitEvent(after, event, 0));
}

}  // namespace

TEST_CASE("a collective runs in its stream's order, on all of its ranks, when the host needs it") {
  const Fresh fresh;
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> from(1), to(1);
    set_to(rank.stream, from, rank.rank + 1);
    CHECK_NCCL(rank.sum(from, to));
    set_to(rank.stream, from, 100);
    CHECK(to.read(rank.stream) == std::vector{3});
    CHECK(from.read(rank.stream) == std::vector{100});
  });
}

TEST_CASE("without an event before the collective, its ranks receive stale data") {
  for (const bool with_event : {true, false}) {
    const Fresh fresh;
    on_ranks(2, [&](Rank& rank) {
      const cudaStream_t compute = new_stream();
      const Buffer<int> from(1), to(1);
      set_to(compute, from, rank.rank + 1);
      if (with_event || rank.rank == 0) order(compute, rank.stream);
      CHECK_NCCL(rank.sum(from, to));
      CHECK(to.read(rank.stream) == std::vector{with_event ? 3 : int(1u + unsigned(poisoned_int))});
    });
  }
}

TEST_CASE("without an event after the collective, its result is stale") {
  for (const bool with_event : {true, false}) {
    const Fresh fresh;
    on_ranks(2, [&](Rank& rank) {
      const cudaStream_t compute = new_stream();
      const Buffer<int> from(std::vector{rank.rank + 1}), to(1);
      CHECK_NCCL(rank.sum(from, to));
      if (with_event) order(rank.stream, compute);
      CHECK(to.read(compute) == std::vector{with_event ? 3 : poisoned_int});
      rank.wait();
    });
  }
}

TEST_CASE("sends before receives, or communicators in different orders, are a detected deadlock") {
  for (const bool sends : {true, false}) {
    Fresh fresh;
    fresh.time_out_early();
    std::barrier here(2);
    on_ranks(2, End::abort, [&](Rank& rank) {
      Rank second = rank;
      second.comm = rank.split();
      const Buffer<int> a(1), b(1);
      if (sends) {
        CHECK_NCCL(rank.send(a, 1 - rank.rank));
        CHECK_NCCL(rank.receive(b, 1 - rank.rank));
      } else {
        CHECK_NCCL((rank.rank == 0 ? rank : second).sum(a));
        CHECK_NCCL((rank.rank == 0 ? second : rank).sum(b));
      }
      until_pending(8);
      here.arrive_and_wait();
      CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchTimeout);
      here.arrive_and_wait();
      CHECK_NCCL(ncclCommAbort(second.comm));
    });
    const std::string first = sends ? "ncclSend" : "ncclAllReduce";
    CHECK(take_faults().find("streams wait for each other, among them one for its " + first) == 0);
  }
}

TEST_CASE(
    "a collective that one rank does not join hangs until the time-out makes the device fail") {
  Fresh fresh;
  fresh.time_out_early();
  on_ranks(2, [](Rank& rank) {
    if (rank.rank == 1) return;
    CHECK_NCCL(rank.sum(Buffer<int>(1)));
    CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchTimeout);
  });
  CHECK(take_faults() ==
        "timed out waiting for work that was never enqueued: ncclAllReduce on world of rank 0\n");
}
