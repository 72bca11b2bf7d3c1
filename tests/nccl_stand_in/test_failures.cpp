// Planted errors, absent ranks, aborts, and ends of communicators that block.
#include <atomic>
#include <barrier>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

void sleep_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

}  // namespace

TEST_CASE("the calls of one device can be made to fail") {
  const Fresh fresh;
  fail_call("ncclAllReduce", 2, ncclInternalError, 1);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{1});
    CHECK_NCCL(rank.sum(buffer));
    if (rank.rank == 1) CHECK_RESULT(rank.sum(buffer), ncclInternalError);
    CHECK_NCCL(rank.sum(buffer));
    CHECK(buffer.read(rank.stream) == std::vector{4});
  });
}

TEST_CASE(
    "an asynchronous error is its rank's; all ranks' operations hang until they are aborted") {
  const Fresh fresh;
  fail_operation(1, 2, ncclRemoteError);
  std::barrier here(3);
  on_ranks(3, End::none, [&](Rank& rank) {
    const Buffer<int> buffer(std::vector{1});
    CHECK_NCCL(rank.sum(buffer));
    CHECK(buffer.read(rank.stream) == std::vector{3});
    CHECK_NCCL(rank.sum(buffer));
    here.arrive_and_wait();
    CHECK_RESULT(rank.async_error(), rank.rank == 1 ? ncclRemoteError : ncclSuccess);
    rank.hangs();
    if (rank.rank == 1) CHECK_RESULT(rank.sum(buffer), ncclRemoteError);
    CHECK_NCCL(ncclCommAbort(rank.comm));
    CHECK(buffer.read(rank.stream) == std::vector{3});  // the call had no effect
  });
}

TEST_CASE("a rank that aborts before its operation has begun leaves the others hanging") {
  for (const bool others_come_later : {false, true}) {
    const Fresh fresh;
    std::barrier here(2);
    on_ranks(2, End::none, [&](Rank& rank) {
      const Buffer<int> buffer(std::vector{1});
      if (rank.rank == 0 || !others_come_later) CHECK_NCCL(rank.sum(buffer));
      here.arrive_and_wait();
      if (rank.rank == 0) {
        CHECK_NCCL(ncclCommAbort(rank.comm));
        if (others_come_later) rank.wait();
      }
      here.arrive_and_wait();
      if (rank.rank == 1) {
        if (others_come_later) CHECK_NCCL(rank.sum(buffer));
        rank.hangs();
        CHECK_NCCL(ncclCommAbort(rank.comm));
      }
      CHECK(buffer.read(rank.stream) == std::vector{1});
    });
  }
}

TEST_CASE("an abort waits for the device's other communicators, unless they go with it") {
  for (const bool together : {true, false}) {
    Fresh fresh;
    fresh.time_out_early();
    on_ranks(2, End::none, [&](Rank& rank) {
      const Buffer<int> a(1), b(1);
      const Rank other{.rank = rank.rank, .comm = rank.split(), .stream = new_stream()};
      if (rank.rank == 0) {
        CHECK_NCCL(rank.sum(a));
        CHECK_NCCL(other.sum(b));
      }
      if (together) CHECK_NCCL(ncclGroupStart());
      CHECK_NCCL(ncclCommAbort(rank.comm));
      CHECK_NCCL(ncclCommAbort(other.comm));
      if (together) CHECK_NCCL(ncclGroupEnd());
    });
    const std::string hang = "ncclCommAbort: waits for ever: what is enqueued on world/split1";
    CHECK((take_faults().find(hang) == std::string::npos) == together);
  }
}

TEST_CASE("an abort ends a waiting call, but must not free its memory before it has ended") {
  for (const bool grouped : {true, false}) {
    const Fresh fresh;
    set_connect_on_use(true);
    on_ranks(2, End::none, [&](Rank& rank) {
      if (rank.rank == 1) {
        CHECK_NCCL(ncclCommAbort(rank.comm));
        return;
      }
      std::atomic<bool> left = false;
      std::thread other([&] {
        sleep_briefly();
        if (grouped) CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclCommAbort(rank.comm));
        if (grouped) CHECK_RESULT(rank.async_error(), ncclInternalError);
        left.wait(false);
        if (grouped) CHECK_NCCL(ncclGroupEnd());
      });
      CHECK_RESULT(rank.sum(Buffer<int>(1)), ncclInternalError);
      left = true;
      left.notify_one();
      other.join();
    });
    CHECK(take_faults() ==
          (grouped ? ""
                   : "nccl: ncclCommAbort: frees world, and a thread is inside of a call on it\n"));
  }
}

TEST_CASE("an abort ends the creation of a communicator, and of a child of it") {
  const Fresh fresh;
  for (const bool splits : {false, true}) {
    const ncclUniqueId id = unique_id();
    ncclComm_t comm = nullptr, child = nullptr;
    if (splits) CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
    hold_call(splits ? "ncclCommSplit" : "ncclCommInitRank");
    std::thread other([&] {
      const std::atomic_ref made(comm);  // visible during initialisation
      while (made == nullptr) std::this_thread::yield();
      sleep_briefly();
      group([&] {
        CHECK_NCCL(ncclCommAbort(made));
        sleep_briefly();
      });
    });
    if (splits) {
      CHECK_RESULT(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInternalError);
      CHECK_NCCL(ncclCommAbort(child));
    } else {
      CHECK_RESULT(ncclCommInitRank(&comm, 1, id, 0), ncclInternalError);
    }
    other.join();
    hold_call("");
  }
}

TEST_CASE("a rank whose device has failed leaves the others hanging") {
  const Fresh fresh;
  std::barrier here(2);
  on_ranks(2, End::abort, [&](Rank& rank) {
    const Buffer<int> buffer(std::vector{1}), zero(std::vector{0});
    if (rank.rank == 0) {
      cuda_stand_in::fail_operation(rank.stream, cudaErrorLaunchFailure);
      CHECK_CUDA(cudaMemcpyAsync(buffer, zero.data, 4, cudaMemcpyDefault, rank.stream));
    }
    CHECK_NCCL(rank.sum(buffer));
    here.arrive_and_wait();
    if (rank.rank == 0) CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchFailure);
    else rank.hangs();
    here.arrive_and_wait();
  });
  CHECK(take_faults() == "a planted error\n");
}
