// Planted errors, absent ranks, aborts, and finalizes that block.
#include <atomic>
#include <barrier>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

ncclResult_t reduce(Rank& rank, const Buffer<int>& buffer) {
  return ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream);
}

}  // namespace

TEST_CASE("any call can be made to fail, on every thread or on those of one device") {
  const Fresh fresh(2);
  fail_call("ncclGetUniqueId", 1, ncclSystemError);
  ncclUniqueId id;
  CHECK_RESULT(ncclGetUniqueId(&id), ncclSystemError);
  CHECK(std::string(ncclGetLastError(nullptr)) == "ncclGetUniqueId: a planted error");
  CHECK_NCCL(ncclGetUniqueId(&id));
  fail_call("ncclAllReduce", 2, ncclInternalError, 1);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{1});
    CHECK_NCCL(reduce(rank, buffer));
    if (rank.rank == 1) CHECK_RESULT(reduce(rank, buffer), ncclInternalError);
    CHECK_NCCL(reduce(rank, buffer));
    CHECK(buffer.read(rank.stream) == std::vector{4});
  });
}

TEST_CASE("a call that is made to fail within a group makes the group fail") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{1, 2});
    fail_call("ncclRecv", 1, ncclInternalError);
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(buffer.data, 1, ncclInt32, 0, rank.comm, rank.stream));
    CHECK_RESULT(ncclRecv(buffer.data + 1, 1, ncclInt32, 0, rank.comm, rank.stream),
                 ncclInternalError);
    CHECK_RESULT(ncclGroupEnd(), ncclInternalError);
    CHECK(buffer.read(rank.stream) == std::vector{1, 2});
  });
}

TEST_CASE("polls can be made to fail") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    fail_call("ncclCommGetAsyncError", 1, ncclSystemError);
    ncclResult_t state;
    CHECK_RESULT(ncclCommGetAsyncError(rank.comm, &state), ncclSystemError);
    CHECK_NCCL(ncclCommGetAsyncError(rank.comm, &state));
  });
}

TEST_CASE(
    "an asynchronous error is its rank's; all ranks' operations hang until they are aborted") {
  const Fresh fresh(3);
  fail_operation(1, 2, ncclRemoteError);
  std::barrier here(3);
  on_ranks(3,
           [&](Rank& rank) {
             const Buffer<int> buffer(std::vector{1});
             CHECK_NCCL(reduce(rank, buffer));
             CHECK(buffer.read(rank.stream) == std::vector{3});
             CHECK_NCCL(reduce(rank, buffer));
             here.arrive_and_wait();
             ncclResult_t state;
             CHECK_NCCL(ncclCommGetAsyncError(rank.comm, &state));
             CHECK_RESULT(state, rank.rank == 1 ? ncclRemoteError : ncclSuccess);
             for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
             if (rank.rank == 1) CHECK_RESULT(reduce(rank, buffer), ncclRemoteError);
             CHECK_NCCL(ncclCommAbort(rank.comm));
             rank.wait();
             CHECK(buffer.read(rank.stream) == std::vector{3});  // the call had no effect
           },
           {.destroy = false});
}

TEST_CASE("an abort, from any thread, wakes the host that waits for a missing rank") {
  const Fresh fresh(2);
  on_ranks(2,
           [&](Rank& rank) {
             const Buffer<int> buffer(std::vector{1});
             if (rank.rank == 0) {
               CHECK_NCCL(reduce(rank, buffer));
               std::thread aborting([&] {
                 for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                 CHECK_NCCL(ncclCommAbort(rank.comm));
               });
               rank.wait();
               aborting.join();
               CHECK(buffer.read(rank.stream) == std::vector{1});
             } else {
               CHECK_NCCL(ncclCommAbort(rank.comm));
             }
           },
           {.destroy = false});
}

TEST_CASE("a rank that aborts before its operation has begun leaves the others hanging") {
  for (const bool others_come_later : {false, true}) {
    const Fresh fresh(2);
    std::barrier here(2);
    const auto body = [&](Rank& rank) {
      const Buffer<int> buffer(std::vector{1});
      if (rank.rank == 0 || !others_come_later) CHECK_NCCL(reduce(rank, buffer));
      here.arrive_and_wait();
      if (rank.rank == 0) {
        CHECK_NCCL(ncclCommAbort(rank.comm));
        if (others_come_later) rank.wait();
      }
      here.arrive_and_wait();
      if (rank.rank == 1) {
        if (others_come_later) CHECK_NCCL(reduce(rank, buffer));
        for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
        CHECK_NCCL(ncclCommAbort(rank.comm));
      }
      rank.wait();
      CHECK(buffer.read(rank.stream) == std::vector{1});
    };
    on_ranks(2, body, {.destroy = false});
  }
}

TEST_CASE("an abort waits for the device's other communicators, unless they go with it") {
  for (const bool together : {true, false}) {
    const Fresh fresh(2);
    const Impatient impatient;
    on_ranks(2,
             [&](Rank& rank) {
               const Buffer<int> buffer(std::vector{1, 1});
               ncclComm_t other = nullptr;
               CHECK_NCCL(ncclCommSplit(rank.comm, 0, rank.rank, &other, nullptr));
               if (rank.rank == 0) {
                 CHECK_NCCL(reduce(rank, buffer));
                 CHECK_NCCL(ncclAllReduce(buffer.data + 1, buffer.data + 1, 1, ncclInt32, ncclSum,
                                          other, rank.new_stream()));
               }
               if (together) CHECK_NCCL(ncclGroupStart());
               CHECK_NCCL(ncclCommAbort(rank.comm));
               CHECK_NCCL(ncclCommAbort(other));
               if (together) CHECK_NCCL(ncclGroupEnd());
             },
             {.destroy = false});
    const std::string hang = "ncclCommAbort: waits for ever: what is enqueued on world/split1";
    CHECK((cuda_stand_in::take_faults().find(hang) == std::string::npos) == together);
  }
}

TEST_CASE("an abort ends a waiting call, but must not free its memory before it has ended") {
  for (const bool grouped : {true, false}) {
    const Fresh fresh(2);
    set_connect_on_use(true);
    on_ranks(2,
             [&](Rank& rank) {
               if (rank.rank == 1) {
                 CHECK_NCCL(ncclCommAbort(rank.comm));
                 return;
               }
               const Buffer<int> buffer(std::vector{1});
               std::atomic<bool> left = false;
               std::thread other([&] {
                 std::this_thread::sleep_for(std::chrono::milliseconds(50));
                 if (grouped) CHECK_NCCL(ncclGroupStart());
                 CHECK_NCCL(ncclCommAbort(rank.comm));
                 while (!left) std::this_thread::yield();
                 if (grouped) CHECK_NCCL(ncclGroupEnd());
               });
               CHECK_RESULT(reduce(rank, buffer), ncclInternalError);
               left = true;
               other.join();
             },
             {.destroy = false});
    fresh.expect_faults(grouped ? ""
                                : "nccl: ncclCommAbort: frees world, and a thread is inside of a "
                                  "call on it\n");
  }
}

TEST_CASE("an abort ends the creation of a communicator, and of a child of it") {
  const Fresh fresh(1);
  for (const char* const function : {"ncclCommInitRank", "ncclCommSplit"}) {
    ncclUniqueId id;
    CHECK_NCCL(ncclGetUniqueId(&id));
    hold_call(function);
    std::atomic<ncclComm_t> made = nullptr;
    std::thread other([&] {
      while (made == nullptr) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      CHECK_NCCL(ncclGroupStart());
      CHECK_NCCL(ncclCommAbort(made));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      CHECK_NCCL(ncclGroupEnd());
    });
    ncclComm_t comm = nullptr, child = nullptr;
    if (std::string(function) == "ncclCommSplit") {
      CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
      made = comm;
      CHECK_RESULT(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInternalError);
      CHECK_NCCL(ncclCommAbort(child));
    } else {
      std::thread look([&] {  // the handle is visible during initialisation
        while (std::atomic_ref(comm).load() == nullptr) std::this_thread::yield();
        made = std::atomic_ref(comm).load();
      });
      CHECK_RESULT(ncclCommInitRank(&comm, 1, id, 0), ncclInternalError);
      look.join();
    }
    other.join();
    hold_call("");
  }
}

TEST_CASE("a destroy waits for an operation that hangs, which is a fault at the time-out") {
  const Fresh fresh(2);
  const Impatient impatient;
  std::barrier done(2);
  on_ranks(2,
           [&](Rank& rank) {
             const Buffer<int> buffer(std::vector{1});
             if (rank.rank == 1) {
               CHECK_NCCL(ncclBroadcast(buffer.data, buffer.data, 1, ncclInt32, 0, rank.comm,
                                        rank.stream));
               CHECK_NCCL(ncclCommDestroy(rank.comm));
             }
             done.arrive_and_wait();
             if (rank.rank == 0) CHECK_NCCL(ncclCommAbort(rank.comm));
           },
           {.destroy = false});
  const std::string faults = cuda_stand_in::take_faults();
  CHECK(faults.find(
            "timed out waiting for work that was never enqueued: ncclBroadcast on world of rank 1\n"
            "nccl: ncclCommDestroy: waits for ever: what is enqueued on world does not "
            "end\n") != std::string::npos);
}

TEST_CASE("a rank whose device has failed leaves the others hanging") {
  const Fresh fresh(2);
  std::barrier here(2);
  on_ranks(
      2,
      [&](Rank& rank) {
        const Buffer<int> buffer(std::vector{1}), zero(std::vector{0});
        if (rank.rank == 0) {
          cuda_stand_in::fail_operation(rank.stream, cudaErrorLaunchFailure);
          CHECK_CUDA(cudaMemcpyAsync(buffer.data, zero.data, 4, cudaMemcpyDefault, rank.stream));
        }
        CHECK_NCCL(reduce(rank, buffer));
        here.arrive_and_wait();
        if (rank.rank == 0) {
          CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorLaunchFailure);
        } else {
          for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
        }
        here.arrive_and_wait();
        CHECK_NCCL(ncclCommAbort(rank.comm));
        if (rank.rank == 1) rank.wait();
      },
      {.destroy = false});
  CHECK(cuda_stand_in::take_faults() == "a planted error\n");
}
