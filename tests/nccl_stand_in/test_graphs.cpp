// Collectives in CUDA graphs: each launch is matched like separate calls.
#include <atomic>
#include <optional>

#include "ranks.hpp"

using namespace nccl_stand_in;

TEST_CASE("a captured collective runs with every launch, and not before") {
  const Fresh fresh;
  on_ranks(2, [](Rank& rank) {
    const Buffer<int> buffer(std::vector{rank.rank + 1, 0});
    const cuda_stand_in::Graph graph(rank.stream, [&] {
      CHECK_NCCL(rank.sum(buffer, buffer + 1));
      CHECK_CUDA(cudaMemcpyAsync(buffer, buffer + 1, 4, cudaMemcpyDeviceToDevice, rank.stream));
    });
    CHECK(buffer.read(rank.stream) == std::vector{rank.rank + 1, 0});
    for (int i = 0; i < 3; ++i) graph.launch(rank.stream);
    CHECK_NCCL(rank.sum(buffer));
    CHECK(buffer.read(rank.stream) == std::vector{24, 12});
  });
}

TEST_CASE("a launch on one rank only hangs until it is aborted; all ends wait for the graph") {
  for (const auto end : {ncclCommAbort, ncclCommFinalize, ncclCommDestroy}) {
    const Fresh fresh;
    const bool aborts = end == ncclCommAbort;
    on_ranks(2, End::none, [&](Rank& rank) {
      const Buffer<int> buffer(std::vector{1});
      std::optional<cuda_stand_in::Graph> graph(std::in_place, rank.stream,
                                                [&] { CHECK_NCCL(rank.sum(buffer)); });
      if (aborts && rank.rank == 0) {
        graph->launch(rank.stream);
        rank.hangs();
      }
      std::atomic<bool> ended = false;
      std::thread ending([&] {
        CHECK_CUDA(cudaSetDevice(rank.rank));
        CHECK_NCCL(end(rank.comm));
        ended = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      rank.wait();
      if (aborts && rank.rank == 0) graph->launch(rank.stream);
      CHECK(buffer.read(rank.stream) == std::vector{1});
      CHECK(!ended);
      graph.reset();
      ending.join();
      if (end == ncclCommFinalize) CHECK_NCCL(ncclCommDestroy(rank.comm));
    });
    CHECK(take_faults() == (aborts
                                ? "nccl: a graph launches ncclAllReduce on world of rank 0, whose "
                                  "communicator was destroyed or aborted\n"
                                : ""));
  }
}
