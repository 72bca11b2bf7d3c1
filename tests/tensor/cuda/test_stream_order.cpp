// Requirements on users of the runtime's streams: memory freed during a capture, queries, results
// awaited on other streams, and errors reported by waits. On the stand-in, which checks them.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_calls.hpp"
#include "cuda_memory.hpp"
#include "cuda_stand_in/stand_in.hpp"
#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::calls_of;
using cleave::testing::error_of;
using cleave::testing::in_use;

namespace {

using Line = Tensor<float, 1, Cuda>;

constexpr index_t line_length = 64;
constexpr std::uint64_t line_bytes = line_length * sizeof(float);

Line filled(float value) {
  Line line({line_length});
  line.fill_(value);
  return line;
}

/// A failure detector that reports a failed peer.
struct Failed : cuda::FailureDetector {
  void verify() override { throw Error("test", "a peer has failed"); }
  void launched() override {}
};

/// The user's stream as the current one. It keeps no memory, unlike cleave's.
struct OnUsersStream {
  cuda::Stream stream{};
  cuda::StreamGuard guard{cuda::Stream::adopt(stream.get())};
};

}  // namespace

TEST_CASE("memory allocated before a capture and released inside is freed after it") {
  const OnUsersStream users;
  const Line result({line_length});
  const std::uint64_t before = in_use();
  {
    Line w = filled(1);
    const cuda::Graph step([&] {
      w = filled(2);
      result.copy_(w);
    });
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(in_use() == before + line_bytes);  // kept by the graph
    step.launch();
    CHECK(result.to(Host{})(line_length - 1) == 2);
  }
  CHECK(in_use() == before);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("memory released in a capture that fails is freed, too") {
  const OnUsersStream users;
  const std::uint64_t before = in_use();
  Line w = filled(1);
  const auto step = [&] {
    w = Line({line_length});
    w = Line();
    throw std::runtime_error("the step failed");
  };
  CHECK_THROWS_AS(cuda::Graph{step}, std::runtime_error);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(in_use() == before);
}

TEST_CASE("memory released in a user's capture is freed by the next allocation or thread exit") {
  const std::uint64_t before = in_use();
  const cuda::Stream users;
  const cudaStream_t stream = users.get();
  for (const bool allocates : {true, false}) {
    std::thread([&] {
      const cuda::StreamGuard guard{cuda::Stream::adopt(stream)};
      Line w = filled(1);
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      w = Line();
      cudaGraph_t graph = nullptr;
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      CHECK(cudaGetLastError() == cudaSuccess);
      if (!allocates) return;
      CHECK(in_use() == before + line_bytes);
      const Line next({line_length});
      CHECK(in_use() == before + line_bytes);
    }).join();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(in_use() == before);
  }
}

TEST_CASE("a query whether work has run leaves no error behind") {
  on_ranks({1}, [](World& world) {
    const Line x = filled(1);
    CHECK(!cuda::current_stream().idle());
    CHECK(cudaGetLastError() == cudaSuccess);
    const auto pending = start_async(Cuda{}, world.communicator(), [&] { return filled(2); });
    CHECK(!pending.ready());
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(pending->to(Host{})(0) == 2);
    CHECK(pending.ready());
  });
}

TEST_CASE("a failed query of peer access leaves no error behind") {
  cuda_stand_in::set_devices(6);
  std::thread([] {
    cuda::set_device(5);
    cuda_stand_in::fail_call("cudaDeviceCanAccessPeer", 1, cudaErrorInvalidDevice);
    const Line x({line_length});
    CHECK(cudaGetLastError() == cudaSuccess);
  }).join();
  cuda_stand_in::set_devices(1);
}

TEST_CASE("operands of asynchronous work live until it has run, wherever it is waited for") {
  on_ranks({1}, [](World& world) {
    const Line result({line_length});
    cuda::current_stream().synchronize();
    const cuda::Stream other(cuda::Stream::Kind::communication);
    Line x = filled(3);
    const auto pending = start_async(Cuda{}, world.communicator(), [x = std::move(x), result] {
      result.copy_(x);
      return 0;
    });
    {
      const cuda::StreamGuard guard(other);
      CHECK(pending.wait() == 0);
    }
    const Line next = filled(-1);  // may reuse the input's memory
    cuda::current_stream().synchronize();
    {
      const cuda::StreamGuard guard(other);
      CHECK(error_of([&] { CHECK(result.to(Host{})(line_length - 1) == 3); }) == "");
    }
    CHECK(cuda_stand_in::take_faults() == "");
    cuda_stand_in::reset();
  });
}

TEST_CASE("indices are checked without a wait, also in a graph; the next wait reports errors") {
  on_ranks({1}, [](World&) {
    const Tensor<int, 1, Cuda> indices({2});
    const Tensor<float, 2, Cuda> table({3, 2}), hot({2, 3}), rows({2, 2}), elements({2, 1});
    const auto step = [&] {
      hot.copy_(one_hot<float>(indices, 3));
      rows.copy_(index_select(table, dim<0>{}, indices));
      elements.copy_(gather(rows, dim<1>{}, indices.unsqueeze(1)));
    };
    table.fill_(5);
    indices.fill_(1);
    {
      const cuda_stand_in::Recording recording;
      step();
      CHECK(calls_of(recording, "Synchronize") == 0);
    }
    const cuda::Graph graph(step);
    graph.launch();
    CHECK(hot.to(Host{})(1, 1) == 1);
    CHECK(rows.to(Host{})(1, 1) == 5);
    const auto said_for = [&](int index) {
      indices.fill_(index);
      graph.launch();
      return error_of([&] { hot.to(Host{}); });
    };
    CHECK(said_for(2) == "gather: index 2 is not in [0, 2)");
    CHECK(said_for(7) == "gather: index 7 is not in [0, 2)");  // the last error is reported
    CHECK(said_for(-1) == "gather: index -1 is not in [0, 2)");
    CHECK(said_for(0) == "");
  });
}

TEST_CASE("a rank that has failed is reported before indices that are wrong for that reason") {
  on_ranks({1}, [](World&) {
    const Tensor<int, 1, Cuda> indices({2});
    indices.fill_(7);
    const auto hot = one_hot<float>(indices, 3);
    const auto failed = std::make_shared<Failed>();
    cuda::detail::detector_slot() = failed;
    CHECK(error_of([&] { hot.to(Host{}); }) == "test: a peer has failed");
    cuda::detail::detector_slot().reset();
    CHECK(error_of([&] { hot.to(Host{}); }) == "one_hot: index 7 is not in [0, 3)");
  });
}
