// What the runtime asks of whoever uses its streams: memory that goes in a capture, queries, and
// results that are waited for elsewhere. On the stand-in, which knows the rules.
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/comm/device/async.hpp>
#include <cleave/comm/device/device_group.hpp>
#include <cleave/tensor/cuda/graph.hpp>
#include <cleave/tensor/tensor.hpp>

#include "cuda_stand_in/stand_in.hpp"
#include "errors.hpp"
#include "in_use.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using cleave::testing::in_use;

namespace {

using Line = Tensor<float, 1, Cuda>;

constexpr index_t count = 64;
constexpr std::uint64_t line_bytes = count * sizeof(float);

Line filled(float value) {
  Line line({count});
  line.fill_(value);
  return line;
}

}  // namespace

TEST_CASE("memory from before a capture whose last owner goes inside returns after it") {
  const Line result({count});
  const std::uint64_t before = in_use();
  {
    Line w = filled(1);
    const cuda::Graph step([&] {
      w = filled(2);
      result.copy_(w);
    });
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(in_use() == before + line_bytes);  // the graph's
    step.launch();
    CHECK(result.to(Host{})(count - 1) == 2);
  }
  CHECK(in_use() == before);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("memory that goes in a capture that fails returns, too") {
  const std::uint64_t before = in_use();
  Line w = filled(1);
  const auto step = [&] {
    w = Line({count});
    w = Line();
    throw std::runtime_error("the step failed");
  };
  CHECK_THROWS_AS(cuda::Graph{step}, std::runtime_error);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(in_use() == before);
}

TEST_CASE("memory that goes in a user's capture returns with the next allocation, or the thread") {
  const std::uint64_t before = in_use();
  for (const bool allocates : {true, false}) {
    std::thread([&] {
      const cudaStream_t stream = cuda::current_stream().get();
      Line w = filled(1);
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
      w = Line();
      cudaGraph_t graph = nullptr;
      CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
      CHECK(cudaGraphDestroy(graph) == cudaSuccess);
      CHECK(cudaGetLastError() == cudaSuccess);
      if (!allocates) return;
      CHECK(in_use() == before + line_bytes);
      const Line next({count});
      CHECK(in_use() == before + line_bytes);
    }).join();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(in_use() == before);
  }
}

TEST_CASE("to ask whether work has run leaves no error behind") {
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

TEST_CASE("a device that does not tell who reaches it leaves no error behind") {
  cuda_stand_in::set_devices(6);
  std::thread([] {
    cuda::set_device(5);
    cuda_stand_in::fail_call("cudaDeviceCanAccessPeer", 1, cudaErrorInvalidDevice);
    const Line x({count});
    CHECK(cudaGetLastError() == cudaSuccess);
  }).join();
  cuda_stand_in::set_devices(1);
}

TEST_CASE("what asynchronous work reads stays until it has run, wherever that is waited for") {
  on_ranks({1}, [](World& world) {
    const Line result({count});
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
    const Line next = filled(-1);  // where the input was, perhaps
    cuda::current_stream().synchronize();
    {
      const cuda::StreamGuard guard(other);
      CHECK(error_of([&] { CHECK(result.to(Host{})(count - 1) == 3); }) == "");
    }
    CHECK(cuda_stand_in::take_faults() == "");
    cuda_stand_in::reset();
  });
}
