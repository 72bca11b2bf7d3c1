// What recordings show of NCCL, among the runtime's calls.
#include <array>

#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE(
    "a recording lists functions, counts, types, operations, roots, communicators and groups") {
  const Fresh fresh(2);
  std::array<std::string, 2> texts;
  on_ranks(2, [&](Rank& rank) {
    const int other = 1 - rank.rank;
    const Buffer<float> a(8), b(8);
    cudaEvent_t event;
    CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    const cudaStream_t compute = rank.new_stream();
    const cuda_stand_in::Recording recording;
    CHECK_CUDA(cudaEventRecord(event, compute));
    CHECK_CUDA(cudaStreamWaitEvent(rank.stream, event, 0));
    CHECK_NCCL(ncclAllReduce(a.data, a.data, 4, ncclFloat32, ncclSum, rank.comm, rank.stream));
    CHECK_NCCL(ncclBroadcast(a.data, b.data, 4, ncclInt32, 1, rank.comm, rank.stream));
    ncclComm_t part;
    CHECK_NCCL(ncclCommSplit(rank.comm, 0, rank.rank, &part, nullptr));
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(a.data, 2, ncclFloat32, other, part, rank.stream));
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclRecv(b.data, 2, ncclFloat32, other, part, rank.stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclReduceScatter(a.data, b.data, 4, ncclFloat32, ncclAvg, part, compute));
    void* memory;
    CHECK_NCCL(ncclMemAlloc(&memory, 64));
    CHECK_NCCL(ncclMemFree(memory));
    ncclResult_t state;
    CHECK_NCCL(ncclCommGetAsyncError(part, &state));
    CHECK_NCCL(ncclCommDestroy(part));
    texts[std::size_t(rank.rank)] = recording.text();
  });
  CHECK(texts[0] ==
        "cudaEventRecord(event 1, stream 1)\n"
        "cudaStreamWaitEvent(event 1, stream 2)\n"
        "ncclAllReduce(stream 2): 4 float32 sum on world\n"
        "ncclBroadcast(stream 2): 4 int32 from 1 on world\n"
        "ncclCommSplit(): color 0 key 0 of world\n"
        "ncclGroupStart(): depth 1\n"
        "ncclSend(stream 2): 2 float32 to 1 on world/split1, group depth 1\n"
        "ncclGroupStart(): depth 2\n"
        "ncclRecv(stream 2): 2 float32 from 1 on world/split1, group depth 2\n"
        "ncclGroupEnd(): depth 1\n"
        "ncclGroupEnd(): depth 0\n"
        "ncclReduceScatter(stream 1): 4 float32 avg on world/split1\n"
        "ncclMemAlloc(): 64 bytes\n"
        "ncclMemFree()\n"
        "ncclCommDestroy(): world/split1\n");
  const std::size_t peer = texts[1].find("2 float32 to 0 on");
  CHECK(peer != std::string::npos);
  CHECK(texts[1].find("key 1 of world") != std::string::npos);
}
