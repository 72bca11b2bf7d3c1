// CUDA graphs of steps that communicate, and the memory that their launches use again.
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "over_nccl.hpp"

using namespace cleave;
using axes::tp;
using cleave::testing::counting;
using cleave::testing::over_nccl;

TEST_CASE("a step is captured with its collectives and replayed") {
  over_nccl({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, Cuda{});
    const auto x = distribute_tensor(counting(4, 3), mesh, Shard<0>{});
    const auto sum = zeros<float>({4, 3}, mesh, Replicate{});
    const auto step = [&] {
      const auto all = x.redistribute(Replicate{});
      sum.local().copy_from((sum + all).local());
    };
    step();
    const cuda::Graph graph(step);
    for (int i = 0; i < 3; ++i) graph.launch();
    const auto values = sum.full_tensor().to(Host{});
    for (index_t i = 0; i < 12; ++i) CHECK(values.data()[i] == 4 * float(i));
  });
}

TEST_CASE("a graph keeps the buffers that its collectives use") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(counting(4, 4), mesh, Shard<1>{});
    const auto whole = zeros<float>({4, 4}, mesh, Replicate{});
    const auto step = [&] { whole.local().copy_from(x.redistribute(Replicate{}).local()); };
    step();
    const cuda::Graph graph(step);
    const auto large = distribute_tensor(counting(40, 40), mesh, Shard<1>{});
    for (int i = 0; i < 3; ++i)  // the communicator's buffer grows
      CHECK(large.redistribute(Replicate{}).to_local().to(Host{})(39, 39) == 1599);
    std::vector<Tensor<float, 1, Cuda>> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(cuda::communicable<float>({8}, mesh.communicator()));
      others.back().fill(-1);
    }
    graph.launch();
    const auto values = whole.local().to(Host{});
    for (index_t i = 0; i < 16; ++i) CHECK(values.data()[i] == float(i));
    for (const auto& other : others) {
      const auto kept = other.to(Host{});
      for (index_t i = 0; i < 8; ++i) CHECK(kept(i) == -1);
    }
  });
}

TEST_CASE("a graph is captured on a stream of its own, between calls on another one") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(counting(4, 4), mesh, Shard<1>{});
    const auto whole = zeros<float>({4, 4}, mesh, Replicate{});
    const auto step = [&] { whole.local().copy_from(x.redistribute(Replicate{}).local()); };
    step();
    const cuda::Stream other;
    cuda::current_stream().synchronize();
    std::vector<cuda::Graph> graphs;
    for (int i = 0; i < 2; ++i) {
      const cuda::StreamGuard guard(other);
      graphs.emplace_back(step);
    }
    step();
    cuda::current_stream().synchronize();
    for (const cuda::Graph& graph : graphs) {
      whole.local().fill(-1);
      cuda::current_stream().synchronize();
      {
        const cuda::StreamGuard guard(other);
        graph.launch();
      }
      other.synchronize();
      const auto values = whole.local().to(Host{});
      for (index_t i = 0; i < 16; ++i) CHECK(values.data()[i] == float(i));
    }
  });
}

TEST_CASE("communicable memory that a graph's function takes is the graph's") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto make = [&] { return cuda::communicable<float>({8}, mesh.communicator()); };
    const Tensor<float, 1, Cuda> result({8});
    auto before = std::make_unique<Tensor<float, 1, Cuda>>(make());
    before->fill(0);
    const cuda::Graph graph([&] {
      const auto within = make();
      within.fill(7);
      before->fill(8);
      result.copy_from(functional::all_reduce(within, Sum{}, functional::Group(mesh)).wait());
      before.reset();
    });
    std::vector<Tensor<float, 1, Cuda>> others;
    for (int i = 0; i < 8; ++i) {
      others.push_back(make());
      others.back().fill(-1);
    }
    graph.launch();
    CHECK(result.to(Host{})(7) == 14);
    for (const auto& other : others) {
      const auto kept = other.to(Host{});
      for (index_t i = 0; i < 8; ++i) CHECK(kept(i) == -1);
    }
  });
}
