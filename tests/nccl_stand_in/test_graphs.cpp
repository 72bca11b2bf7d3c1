// Collectives in CUDA graphs: each launch is matched like separate calls.
#include <atomic>
#include <optional>

#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("a captured collective runs with every launch, and not before") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{rank.rank + 1, 0});
    const cuda_stand_in::Graph graph(rank.stream, [&] {
      CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data + 1, 1, ncclInt32, ncclSum, rank.comm,
                               rank.stream));
      CHECK_CUDA(
          cudaMemcpyAsync(buffer.data, buffer.data + 1, 4, cudaMemcpyDeviceToDevice, rank.stream));
    });
    CHECK(buffer.read(rank.stream) == std::vector{rank.rank + 1, 0});
    for (int i = 0; i < 3; ++i) graph.launch(rank.stream);
    CHECK_NCCL(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclMax, rank.comm, rank.stream));
    CHECK(buffer.read(rank.stream) == std::vector{12, 12});
  });
}

TEST_CASE("a launch on one rank only hangs until it is aborted; the abort waits for the graph") {
  const Fresh fresh(2);
  on_ranks(2,
           [](Rank& rank) {
             const Buffer<int> buffer(std::vector{1});
             std::optional<cuda_stand_in::Graph> graph(std::in_place, rank.stream, [&] {
               CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream));
             });
             if (rank.rank == 0) {
               graph->launch(rank.stream);
               for (int i = 0; i < 10; ++i)
                 CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
             }
             std::atomic<bool> ended = false;
             std::thread watch([&] {
               CHECK_CUDA(cudaSetDevice(rank.rank));
               CHECK_NCCL(ncclCommAbort(rank.comm));
               ended = true;
             });
             rank.wait();
             CHECK(buffer.read(rank.stream) == std::vector{1});
             CHECK(!ended);
             graph.reset();
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
               std::optional<cuda_stand_in::Graph> graph(std::in_place, rank.stream, [&] {
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
               graph.reset();
               ending.join();
               if (finalize) CHECK_NCCL(ncclCommDestroy(rank.comm));
             },
             {.destroy = false});
  }
}
