// CUDA graphs of steps that communicate, and the memory that their launches reuse.
#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "over_nccl.hpp"

using namespace cleave;
using axes::tp;
using cleave::testing::counting;
using cleave::testing::over_nccl;
using cleave::testing::Setting;

namespace {

/// A step that gathers the columns of a matrix.
template <class Mesh>
struct Gathering {
  DTensor<float, 2, Mesh, Placements<Shard<1>>> columns;
  Tensor<float, 2, Cuda> whole{{4, 4}};

  explicit Gathering(const Mesh& mesh)
      : columns(distribute_tensor(counting(4, 4), mesh, Shard<1>{})) {}

  void operator()() const { whole.copy_(columns.redistribute(Replicate{}).to_local()); }
  void check() const {
    const auto values = whole.to(Host{});
    for (index_t i = 0; i < 16; ++i) CHECK(values.data()[i] == float(i));
  }
};

/// Tensors that no other code may write to.
class Bystanders {
 public:
  Bystanders() {
    for (int i = 0; i < 8; ++i) {
      tensors_.emplace_back(std::array<index_t, 1>{8});
      tensors_.back().fill_(-1);
    }
  }
  void check() const {
    for (const auto& tensor : tensors_) {
      const auto kept = tensor.to(Host{});
      for (index_t i = 0; i < 8; ++i) CHECK(kept(i) == -1);
    }
  }

 private:
  std::vector<Tensor<float, 1, Cuda>> tensors_;
};

}  // namespace

TEST_CASE("a step is captured with its collectives and replayed") {
  over_nccl({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, Cuda{});
    const auto x = distribute_tensor(counting(4, 3), mesh, Shard<0>{});
    const auto sum = zeros<float>({4, 3}, mesh, Replicate{});
    const auto step = [&] {
      const auto all = x.redistribute(Replicate{});
      sum.to_local().copy_((sum + all).to_local());
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
    const Gathering step(mesh);
    step();
    const cuda::Graph graph(step);
    const auto large = distribute_tensor(counting(40, 40), mesh, Shard<1>{});
    for (int i = 0; i < 3; ++i)  // the communicator's buffer grows
      CHECK(large.redistribute(Replicate{}).to_local().to(Host{})(39, 39) == 1599);
    const Bystanders others;
    graph.launch();
    step.check();
    others.check();
  });
}

TEST_CASE("a graph is captured on a stream of its own, between calls on another one") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const Gathering step(mesh);
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
      step.whole.fill_(-1);
      cuda::current_stream().synchronize();
      {
        const cuda::StreamGuard guard(other);
        graph.launch();
      }
      other.synchronize();
      step.check();
    }
  });
}

TEST_CASE("a capture goes on undisturbed while earlier collectives of its stream end") {
  const Setting timeout("CLEAVE_TIMEOUT", "20");
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const Gathering step(mesh);
    step();
    cuda::current_stream().synchronize();
    for (int i = 0; i < 3; ++i) step();  // two of them come after the one that is monitored
    const cuda::Graph graph([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      step();
    });
    graph.launch();
    step.check();
  });
}

TEST_CASE("memory that a graph's function allocates belongs to the graph") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const Tensor<float, 1, Cuda> result({8});
    const cuda::Graph graph([&] {
      const Tensor<float, 1, Cuda> within({8});
      within.fill_(7);
      result.copy_(functional::all_reduce(within, Sum{}, functional::Group(mesh)).wait());
    });
    const Bystanders others;
    graph.launch();
    CHECK(result.to(Host{})(7) == 14);
    others.check();
  });
  CHECK(cuda_stand_in::take_faults() == "");
}
