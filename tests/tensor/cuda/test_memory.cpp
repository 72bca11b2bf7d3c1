// Exhausted device memory: what nobody uses is released and used, errors name the amounts. On the
// stand-in, whose memory is limited, and whose pools keep what is freed.
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

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

namespace {

using Line = Tensor<float, 1, Cuda>;

constexpr std::size_t mib = std::size_t(1) << 20;

Line line_of(std::size_t bytes) { return Line({index_t(bytes / sizeof(float))}); }

/// Limits the memory of each device, of which this process then holds none.
class Limit {
 public:
  explicit Limit(std::size_t bytes) {
    static_cast<void>(cleave::testing::in_use());
    CHECK(cudaMemPoolTrimTo(cuda::detail::device_pool(cuda::current_device()), 0) == cudaSuccess);
    std::size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
    cuda_stand_in::set_memory(total - free + bytes);
  }
  Limit(const Limit&) = delete;  // there is one limit
  ~Limit() {
    cuda_stand_in::set_memory(0);
    CHECK(cuda_stand_in::take_faults() == "");
  }
};

}  // namespace

TEST_CASE("an allocation that fails releases what nobody uses, and is made again") {
  const Limit limit(64 * mib);
  std::optional<Line> lines[4];
  for (auto& line : lines) line = line_of(15 * mib);
  lines[1]->fill_(3);
  lines[0].reset();
  lines[2].reset();
  const Line large = line_of(30 * mib);  // as large as both gaps
  large.fill_(5);
  CHECK(large.to(Host{})(index_t(30 * mib / sizeof(float)) - 1) == 5);
  CHECK(lines[1]->to(Host{})(7) == 3);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("memory that was freed on another stream is used, too") {
  const Limit limit(64 * mib);
  const cuda::Stream other(cuda::Stream::Kind::communication);
  const Line kept = line_of(1 * mib);
  std::optional<Line> lines[3];
  for (auto& line : lines) {
    const cuda::StreamGuard guard(other);
    line = line_of(20 * mib);
    line->fill_(1);
  }
  lines[0].reset();
  lines[2].reset();
  const Line large = line_of(40 * mib);
  large.fill_(5);
  CHECK(large.to(Host{})(0) == 5);
}

TEST_CASE("memory that no tensor uses is available to others of the process") {
  const Limit limit(64 * mib);
  line_of(60 * mib).fill_(1);
  void* data = nullptr;
  CHECK(cudaMallocAsync(&data, 40 * mib, cuda::current_stream().get()) ==
        cudaErrorMemoryAllocation);
  static_cast<void>(cudaGetLastError());
  cuda::release_idle();
  CHECK(cudaMallocAsync(&data, 40 * mib, cuda::current_stream().get()) == cudaSuccess);
  CHECK(cudaFreeAsync(data, cuda::current_stream().get()) == cudaSuccess);
}

TEST_CASE(
    "the error of an exhausted device names what was asked for, what is free, and the total") {
  const Limit limit(64 * mib);
  const Line held = line_of(32 * mib);
  std::size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(error_of([] { line_of(40 * mib); }) ==
        "Tensor: out of device memory: 41943040 bytes requested, " + std::to_string(free) + " of " +
            std::to_string(total) + " bytes of GPU 0 are free");
  CHECK(cudaGetLastError() == cudaSuccess);
  held.fill_(2);
  CHECK(held.to(Host{})(0) == 2);
}

TEST_CASE("a capture does not wait for memory: its allocations are the graph's") {
  const Line result = line_of(64);
  const cuda_stand_in::Recording recording;
  const auto step = [&] {
    cuda_stand_in::fail_call("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation);
    Line inside = line_of(64);
    result.copy_(inside);
  };
  CHECK(error_of([&] { cuda::Graph{step}; }).find("out of device memory: 64 bytes requested") !=
        std::string::npos);
  CHECK(calls_of(recording, "cudaMemPoolTrimTo") == 0);
  CHECK(calls_of(recording, "Synchronize") == 0);
}

TEST_CASE("a launch whose graph finds no memory releases what nobody uses, and is made again") {
  const Line result = line_of(64);
  const cuda::Graph step([&] { result.fill_(4); });
  const cuda_stand_in::Recording recording;
  cuda_stand_in::fail_call("cudaGraphLaunch", 1, cudaErrorMemoryAllocation);
  step.launch();
  CHECK(calls_of(recording, "cudaMemPoolTrimTo") == 1);
  CHECK(calls_of(recording, "cudaDeviceGraphMemTrim") == 1);
  CHECK(result.to(Host{})(3) == 4);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("an allocation that fails leaves another thread's capture valid") {
  const Line result = line_of(64);
  const cuda::Graph step([&] {
    std::thread([] {
      cuda_stand_in::fail_call("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation);
      CHECK(error_of([] { line_of(64).fill_(1); }) == "");
    }).join();
    result.fill_(6);
  });
  step.launch();
  CHECK(result.to(Host{})(3) == 6);
}

TEST_CASE("the process's default pool is left to others") {
  cudaMemPool_t pool = nullptr;
  std::uint64_t used = 1;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  const Line held = line_of(64);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 0);
}
