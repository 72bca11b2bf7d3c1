// The memory that NCCL accepts, and its registration.
#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("buffers and streams are the device's, and a buffer is inside one allocation") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    const Buffer<char> buffer(16);
    char host[16] = {};
    CHECK_RESULT(rank.broadcast(host, buffer, 16), ncclInvalidArgument);
    CHECK_RESULT(rank.broadcast(nullptr, buffer, 16), ncclInvalidArgument);
    CHECK_RESULT(rank.broadcast(buffer, buffer + 8, 9), ncclInvalidArgument);
    CHECK_CUDA(cudaSetDevice(1));
    const Buffer<char> elsewhere(16);
    Rank other = rank;
    other.stream = new_stream();
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_RESULT(rank.broadcast(buffer, elsewhere, 16), ncclInvalidArgument);
    CHECK_RESULT(other.broadcast(buffer, buffer, 16), ncclUnhandledCudaError);
    CHECK_CUDA(cudaFree(buffer));
    CHECK_RESULT(rank.broadcast(buffer, buffer, 16), ncclInvalidArgument);
  });
  CHECK(take_faults() ==
        "nccl: ncclBroadcast: the send buffer of 16 bytes is no memory of a device\n"
        "nccl: ncclBroadcast: the send buffer of 16 bytes is no memory of a device\n"
        "nccl: ncclBroadcast: the receive buffer of 9 bytes is in no single allocation\n"
        "nccl: ncclBroadcast: the receive buffer of 16 bytes is on device 1, the communicator on "
        "device 0\n"
        "nccl: ncclBroadcast: the send buffer of 16 bytes is in no single allocation\n");
}

TEST_CASE("memory not yet or no longer allocated in stream order is a fault") {
  for (const bool is_input : {true, false}) {
    const Fresh fresh;
    on_ranks(1, End::abort, [&](Rank& rank) {
      const Buffer<char> buffer(16);
      void* data = nullptr;
      CHECK_CUDA(cudaMallocAsync(&data, 16, new_stream()));
      CHECK_NCCL(is_input ? rank.broadcast(data, buffer, 16) : rank.broadcast(buffer, data, 16));
      CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorIllegalAddress);
    });
    CHECK(take_faults() ==
          "ncclBroadcast on world of rank 0 touches memory that is freed or, in its stream, not "
          "yet allocated\n");
  }
}

TEST_CASE("buffers overlap in place only") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    const Buffer<char> buffer(16);
    char* const data = buffer;
    CHECK_NCCL(rank.broadcast(data, data, 8));
    CHECK_NCCL(rank.broadcast(data, data + 8, 8));
    CHECK_RESULT(rank.broadcast(data, data + 4, 8), ncclInvalidArgument);
    CHECK_NCCL(ncclAllGather(data, data, 8, ncclUint8, rank.comm, rank.stream));
    CHECK_RESULT(ncclAllGather(data + 1, data, 8, ncclUint8, rank.comm, rank.stream),
                 ncclInvalidArgument);
    CHECK_RESULT(ncclAlltoAll(data, data, 8, ncclUint8, rank.comm, rank.stream),
                 ncclInvalidArgument);
    rank.wait();
  });
  CHECK(take_faults() ==
        "nccl: ncclBroadcast: the buffers overlap, and not as they do in place\n"
        "nccl: ncclAllGather: the buffers overlap, and not as they do in place\n"
        "nccl: ncclAlltoAll: the buffers overlap, and not as they do in place\n");
}

TEST_CASE("a registration is of one allocation, and ends once, while its communicator is idle") {
  const Fresh fresh;
  on_ranks(1, [](Rank& rank) {
    const Buffer<int> buffer(25);
    void* handle = nullptr;
    CHECK_RESULT(ncclCommRegister(rank.comm, buffer, 101, &handle), ncclInvalidArgument);
    for (const bool wait : {true, false}) {
      CHECK_NCCL(ncclCommRegister(rank.comm, buffer, 100, &handle));
      CHECK_NCCL(rank.sum(buffer));
      if (wait) rank.wait();
      CHECK_NCCL(ncclCommDeregister(rank.comm, handle));
    }
    CHECK_RESULT(ncclCommDeregister(rank.comm, handle), ncclInvalidUsage);
  });
  CHECK(take_faults() ==
        "nccl: ncclCommRegister: 101 bytes that are not in one allocation on device 0\n"
        "nccl: ncclCommDeregister: what is enqueued on world has not ended\n"
        "nccl: ncclCommDeregister: what is enqueued on world has not ended\n"
        "nccl: ncclCommDeregister: the handle is none of this communicator\n");
}

TEST_CASE("registered and unregistered buffers in one call are a fault, on whichever rank") {
  const Fresh fresh;
  on_ranks(2, [&](Rank& rank) {
    const Buffer<int> known(8), other(8);
    void* handle = nullptr;
    CHECK_NCCL(ncclCommRegister(rank.comm, known, 16, &handle));
    CHECK_NCCL(rank.sum(known, known, 4));
    CHECK_NCCL(rank.sum(other));
    CHECK_NCCL(rank.sum(known, other));
    CHECK_NCCL(rank.sum(known + 4, known));
    // 0 sends what is registered to what is not
    CHECK_NCCL(rank.rank == 0 ? rank.send(known, 1) : rank.receive(other, 0));
    rank.wait();
    CHECK_NCCL(ncclCommDeregister(rank.comm, handle));
  });
  const std::string mixed = "nccl: registered and unregistered buffers in ";
  CHECK(take_faults() == mixed + "collective 3 on world\n" + mixed + "collective 4 on world\n" +
                             mixed + "transfer 1 from rank 0 to rank 1 on world\n");
}
