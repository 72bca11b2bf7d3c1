// The memory that NCCL accepts, memory allocated by NCCL, registration.
#include <cstdlib>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

ncclResult_t copy(Rank& rank, const void* from, void* to, std::size_t bytes) {
  return ncclBroadcast(from, to, bytes, ncclUint8, 0, rank.comm, rank.stream);
}

}  // namespace

TEST_CASE("buffers are memory of the communicator's device, inside one allocation") {
  const Fresh fresh(2);
  on_ranks(1, [](Rank& rank) {
    const Buffer<char> buffer(16);
    char host[16] = {};
    CHECK_RESULT(copy(rank, host, buffer.data, 16), ncclInvalidArgument);
    CHECK_RESULT(copy(rank, nullptr, buffer.data, 16), ncclInvalidArgument);
    CHECK_RESULT(copy(rank, buffer.data, buffer.data + 8, 9), ncclInvalidArgument);
    CHECK_CUDA(cudaSetDevice(1));
    const Buffer<char> elsewhere(16);
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_RESULT(copy(rank, buffer.data, elsewhere.data, 16), ncclInvalidArgument);
    CHECK_CUDA(cudaFree(buffer.data));
    CHECK_RESULT(copy(rank, buffer.data, buffer.data, 16), ncclInvalidArgument);
  });
  fresh.expect_faults(
      "nccl: ncclBroadcast: the send buffer of 16 bytes is no memory of a device\n"
      "nccl: ncclBroadcast: the send buffer of 16 bytes is no memory of a device\n"
      "nccl: ncclBroadcast: the receive buffer of 9 bytes is in no single allocation\n"
      "nccl: ncclBroadcast: the receive buffer of 16 bytes is on device 1, the communicator on "
      "device 0\n"
      "nccl: ncclBroadcast: the send buffer of 16 bytes is in no single allocation\n");
}

TEST_CASE("memory not yet or no longer allocated in stream order is a fault") {
  const Fresh fresh(1);
  on_ranks(1,
           [](Rank& rank) {
             const cudaStream_t other = rank.new_stream();
             void* data = nullptr;
             CHECK_CUDA(cudaMallocAsync(&data, 16, other));
             CHECK_NCCL(copy(rank, data, data, 16));
             CHECK(cudaStreamSynchronize(rank.stream) == cudaErrorIllegalAddress);
             CHECK_NCCL(ncclCommAbort(rank.comm));
           },
           {.destroy = false});
  fresh.expect_faults(
      "ncclBroadcast on world of rank 0 touches memory that is freed or, in its stream, not yet "
      "allocated\n");
}

TEST_CASE("the stream is one of the communicator's device") {
  const Fresh fresh(2);
  on_ranks(1, [](Rank& rank) {
    const Buffer<char> buffer(16);
    CHECK_CUDA(cudaSetDevice(1));
    Rank other = rank;
    other.stream = rank.new_stream();
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_RESULT(copy(other, buffer.data, buffer.data, 16), ncclUnhandledCudaError);
  });
}

TEST_CASE("buffers overlap in place only") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    const Buffer<char> buffer(16);
    CHECK_NCCL(copy(rank, buffer.data, buffer.data, 8));
    CHECK_NCCL(copy(rank, buffer.data, buffer.data + 8, 8));
    CHECK_RESULT(copy(rank, buffer.data, buffer.data + 4, 8), ncclInvalidArgument);
    CHECK_NCCL(ncclAllGather(buffer.data, buffer.data, 8, ncclUint8, rank.comm, rank.stream));
    CHECK_RESULT(ncclAllGather(buffer.data + 1, buffer.data, 8, ncclUint8, rank.comm, rank.stream),
                 ncclInvalidArgument);
    CHECK_RESULT(ncclAlltoAll(buffer.data, buffer.data, 8, ncclUint8, rank.comm, rank.stream),
                 ncclInvalidArgument);
    rank.wait();
  });
  fresh.expect_faults(
      "nccl: ncclBroadcast: the buffers overlap, and not as they do in place\n"
      "nccl: ncclAllGather: the buffers overlap, and not as they do in place\n"
      "nccl: ncclAlltoAll: the buffers overlap, and not as they do in place\n");
}

TEST_CASE("NCCL's own memory is memory of the current device, to be freed by NCCL") {
  const Fresh fresh(2);
  CHECK_CUDA(cudaSetDevice(1));
  void* data = nullptr;
  CHECK_NCCL(ncclMemAlloc(&data, 100));
  cudaPointerAttributes attributes{};
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, data));
  CHECK(attributes.device == 1);
  const Buffer<char> other(8);
  CHECK_RESULT(ncclMemFree(other.data), ncclInvalidArgument);
  CHECK_NCCL(ncclMemFree(data));
  CHECK_NCCL(ncclMemFree(nullptr));
  CHECK_RESULT(ncclMemFree(data), ncclInvalidArgument);
  cuda_stand_in::fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
  CHECK_RESULT(ncclMemAlloc(&data, 100), ncclUnhandledCudaError);
  CHECK(std::string(ncclGetLastError(nullptr)) == "ncclMemAlloc: out of memory");
  cudaGetLastError();
  fresh.expect_faults(
      "nccl: ncclMemFree: the memory is not of ncclMemAlloc\n"
      "nccl: ncclMemFree: the memory is not of ncclMemAlloc\n");
}

TEST_CASE("a registration that ends while its communicator is at work is a fault") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    void* data = nullptr;
    CHECK_NCCL(ncclMemAlloc(&data, 100));
    for (const bool wait : {true, false}) {
      void* handle = nullptr;
      CHECK_NCCL(ncclCommRegister(rank.comm, data, 100, &handle));
      CHECK_NCCL(ncclAllReduce(data, data, 25, ncclInt32, ncclSum, rank.comm, rank.stream));
      if (wait) rank.wait();
      CHECK_NCCL(ncclCommDeregister(rank.comm, handle));
    }
    CHECK_NCCL(ncclMemFree(data));
  });
  fresh.expect_faults("nccl: ncclCommDeregister: what is enqueued on world has not ended\n");
}

TEST_CASE("registered memory is known to its communicator, until it is deregistered") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    void* data = nullptr;
    CHECK_NCCL(ncclMemAlloc(&data, 100));
    void* handle = nullptr;
    CHECK_RESULT(ncclCommRegister(rank.comm, data, 101, &handle), ncclInvalidArgument);
    CHECK_NCCL(ncclCommRegister(rank.comm, data, 100, &handle));
    CHECK(is_registered(rank.comm, static_cast<char*>(data) + 50, 50));
    CHECK(!is_registered(rank.comm, static_cast<char*>(data) + 50, 51));
    CHECK_NCCL(ncclCommDeregister(rank.comm, handle));
    CHECK(!is_registered(rank.comm, data, 1));
    CHECK_RESULT(ncclCommDeregister(rank.comm, handle), ncclInvalidUsage);
    CHECK_NCCL(ncclCommRegister(rank.comm, data, 100, &handle));
    CHECK_NCCL(ncclMemFree(data));
  });
  fresh.expect_faults(
      "nccl: ncclCommRegister: 101 bytes that are not in one allocation on device 0\n"
      "nccl: ncclCommDeregister: the handle is none of this communicator\n"
      "nccl: ncclMemFree: the memory is registered with a communicator\n");
}

TEST_CASE("registered and unregistered buffers in one call are a fault, on whichever rank") {
  for (const bool sends : {true, false}) {
    const Fresh fresh(2);
    on_ranks(2, [&](Rank& rank) {
      void* data = nullptr;
      CHECK_NCCL(ncclMemAlloc(&data, 16));
      void* handle = nullptr;
      CHECK_NCCL(ncclCommRegister(rank.comm, data, 16, &handle));
      const Buffer<char> other(16);
      CHECK_NCCL(ncclAllReduce(data, data, 4, ncclInt32, ncclSum, rank.comm, rank.stream));
      CHECK_NCCL(
          ncclAllReduce(other.data, other.data, 4, ncclInt32, ncclSum, rank.comm, rank.stream));
      if (sends) {
        const int peer = 1 - rank.rank;  // 0 sends what is registered to what is not
        CHECK_NCCL(rank.rank == 0
                       ? ncclSend(data, 4, ncclInt32, peer, rank.comm, rank.stream)
                       : ncclRecv(other.data, 4, ncclInt32, peer, rank.comm, rank.stream));
      } else {
        CHECK_NCCL(ncclAllReduce(data, other.data, 4, ncclInt32, ncclSum, rank.comm, rank.stream));
      }
      rank.wait();
      CHECK_NCCL(ncclCommDeregister(rank.comm, handle));
      CHECK_NCCL(ncclMemFree(data));
    });
    fresh.expect_faults(
        sends ? "nccl: registered and unregistered buffers in transfer 1 from rank 0 to "
                "rank 1 on world\n"
              : "nccl: registered and unregistered buffers in collective 3 on world\n");
  }
}
