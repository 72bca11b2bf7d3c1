// Collectives in CUDA graphs: each launch is matched like calls of its own.
#include <atomic>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

cudaGraphExec_t capture(cudaStream_t stream, const auto& body) {
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  body();
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK_CUDA(cudaGraphDestroy(graph));
  return executable;
}

}  // namespace

TEST_CASE("a captured collective runs with every launch, and not before") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{rank.rank + 1, 0});
    const cudaGraphExec_t graph = capture(rank.stream, [&] {
      CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data + 1, 1, ncclInt32, ncclSum, rank.comm,
                               rank.stream));
      CHECK_CUDA(
          cudaMemcpyAsync(buffer.data, buffer.data + 1, 4, cudaMemcpyDeviceToDevice, rank.stream));
    });
    CHECK(buffer.read(rank.stream) == std::vector{rank.rank + 1, 0});
    for (int i = 0; i < 3; ++i) CHECK_CUDA(cudaGraphLaunch(graph, rank.stream));
    CHECK_NCCL(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclMax, rank.comm, rank.stream));
    CHECK(buffer.read(rank.stream) == std::vector{12, 12});
    CHECK_CUDA(cudaGraphExecDestroy(graph));
  });
}

TEST_CASE("a group over several captured streams joins them") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const cudaStream_t other = rank.new_stream();
    const Buffer<int> a(std::vector{1}), b(std::vector{5}), from(1);
    cudaEvent_t fork, join;
    CHECK_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    const cudaGraphExec_t graph = capture(rank.stream, [&] {
      CHECK_CUDA(cudaEventRecord(fork, rank.stream));
      CHECK_CUDA(cudaStreamWaitEvent(other, fork, 0));
      CHECK_CUDA(cudaMemcpyAsync(from.data, b.data, 4, cudaMemcpyDeviceToDevice, other));
      CHECK_NCCL(ncclGroupStart());
      CHECK_NCCL(ncclAllReduce(a.data, a.data, 1, ncclInt32, ncclSum, rank.comm, rank.stream));
      CHECK_NCCL(ncclAllReduce(from.data, b.data, 1, ncclInt32, ncclSum, rank.comm, other));
      CHECK_NCCL(ncclGroupEnd());
      CHECK_CUDA(cudaEventRecord(join, other));
      CHECK_CUDA(cudaStreamWaitEvent(rank.stream, join, 0));
    });
    for (int i = 0; i < 2; ++i) CHECK_CUDA(cudaGraphLaunch(graph, rank.stream));
    CHECK(a.read(rank.stream) == std::vector{4});
    CHECK(b.read(rank.stream) == std::vector{20});
    CHECK_CUDA(cudaGraphExecDestroy(graph));
  });
}

TEST_CASE("a launch on one rank only hangs until it is aborted; the abort waits for the graph") {
  const Fresh fresh(2);
  on_ranks(2,
           [](Rank& rank) {
             const Buffer<int> buffer(std::vector{1});
             const cudaGraphExec_t graph = capture(rank.stream, [&] {
               CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream));
             });
             if (rank.rank == 0) {
               CHECK_CUDA(cudaGraphLaunch(graph, rank.stream));
               for (int i = 0; i < 10; ++i)
                 CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
             }
             std::atomic<bool> ended = false;
             std::thread watch([&] {
               CHECK_NCCL(ncclCommAbort(rank.comm));
               ended = true;
             });
             rank.wait();
             CHECK(buffer.read(rank.stream) == std::vector{1});
             CHECK(!ended);
             CHECK_CUDA(cudaGraphExecDestroy(graph));
             watch.join();
           },
           {.destroy = false});
}

TEST_CASE("a finalize, and a destroy without one, wait for the graph") {
  for (const bool finalize : {true, false}) {
    const Fresh fresh(1);
    on_ranks(1,
             [&](Rank& rank) {
               const Buffer<int> buffer(std::vector{1, 2});
               const cudaGraphExec_t graph = capture(rank.stream, [&] {
                 CHECK_NCCL(ncclBroadcast(buffer.data, buffer.data + 1, 1, ncclInt32, 0, rank.comm,
                                          rank.stream));
               });
               std::atomic<bool> ended = false;
               std::thread ending([&] {
                 if (finalize) CHECK_NCCL(ncclCommFinalize(rank.comm));
                 else CHECK_NCCL(ncclCommDestroy(rank.comm));
                 ended = true;
               });
               std::this_thread::sleep_for(std::chrono::milliseconds(50));
               CHECK(!ended);
               CHECK_CUDA(cudaGraphExecDestroy(graph));
               ending.join();
               if (finalize) CHECK_NCCL(ncclCommDestroy(rank.comm));
             },
             {.destroy = false});
  }
}
