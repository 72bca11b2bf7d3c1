// Memory that streams keep for their next tensors: which calls it saves, that the order of streams
// holds, and that it is freed for others. On the stand-in, which records calls.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_calls.hpp"
#include "cuda_memory.hpp"
#include "cuda_stand_in/stand_in.hpp"
#include "errors.hpp"

namespace freed_blocks_test {

using namespace cleave;
using cleave::testing::calls_of;
using cleave::testing::error_of;
using cleave::testing::in_use;

using Numbers = Tensor<float, 1, Cuda>;

constexpr std::size_t mib = std::size_t(1) << 20;

Numbers numbers(index_t n, float value) {
  Numbers x({n});
  x.fill_(value);
  return x;
}

/// Bytes that the pool has handed out, including those that streams keep.
std::uint64_t held() {
  std::uint64_t bytes = 0;
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaMemPoolGetAttribute(cuda::detail::device_pool(cuda::current_device()),
                                cudaMemPoolAttrUsedMemCurrent, &bytes) == cudaSuccess);
  return bytes;
}

/// The calls of the runtime that y = f() and the end of y make.
template <class F>
std::vector<std::string> calls_by(const F& f) {
  f();  // the first call allocates
  const cuda_stand_in::Recording recording;
  f();
  std::vector<std::string> names;
  for (const cuda_stand_in::Call& call : recording.calls()) names.push_back(call.function);
  return names;
}

TEST_CASE("a tensor in memory of a destroyed one costs a single call beside its kernel") {
  using Names = std::vector<std::string>;
  const auto twice = [] {
    const Numbers x = numbers(1000, 2);
    return calls_by([&] { x * 2.0f; });
  };
  CHECK(twice() == Names{"cudaStreamGetCaptureInfo", "cudaLaunchKernelEx"});
  const cuda::Stream other;
  const cuda::StreamGuard guard{cuda::Stream::adopt(other.get())};  // keeps nothing
  CHECK(twice() == Names{"cudaStreamGetCaptureInfo", "cudaGetDevice", "cudaMallocFromPoolAsync",
                         "cudaLaunchKernelEx", "cudaStreamGetCaptureInfo", "cudaFreeAsync"});
}

TEST_CASE(
    "memory is used again in the order of its stream: every value is that of its own tensor") {
  std::vector<std::pair<Numbers, float>> results;
  Numbers x = numbers(500, 1);
  float expected = 1;
  for (int i = 0; i < 40; ++i) {
    x = x * 2.0f - 1.5f;  // frees two tensors of this size, and takes their memory
    expected = expected * 2 - 1.5f;
    if (i % 9 == 0) results.emplace_back(x + 1.0f, expected + 1);
    if (expected < -1000) x = numbers(500, 1), expected = 1;
  }
  for (const auto& [y, value] : results) {
    const auto host = y.to(Host{});
    index_t wrong = 0;
    for (index_t i = 0; i < host.size(); ++i) wrong += host(i) != value;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a stream never gets memory of another, whose work may still use it") {
  const cuda::Stream other(cuda::Stream::Kind::communication);
  const Numbers result({1000});
  const void* address = nullptr;
  {
    const Numbers x = numbers(1000, 4);
    address = x.data();
    result.copy_(x);  // has not run when the other stream's kernel runs
  }
  {
    const cuda::StreamGuard guard(other);
    const Numbers y = numbers(1000, 5);
    CHECK(y.data() != address);
    CHECK(y.to(Host{})(999) == 5);
  }
  CHECK(result.to(Host{})(999) == 4);
  CHECK(Numbers({1000}).data() == address);
}

TEST_CASE("memory that another thread releases stays with its stream") {
  std::optional<Numbers> x = numbers(600, 4);
  const void* const address = x->data();
  std::thread([&] {
    x.reset();
    CHECK(Numbers({600}).data() != address);
  }).join();
  CHECK(Numbers({600}).data() == address);
}

TEST_CASE("memory that is handed over to a stream stays with that stream") {
  const cuda::Stream other(cuda::Stream::Kind::communication);
  std::optional<Numbers> x = numbers(700, 4);
  const void* const address = x->data();
  const cuda::Event ready;
  ready.record(cuda::current_stream());
  {
    const cuda::StreamGuard guard(other);
    ready.wait_on(other);
    cuda::hand_over(x->storage());
    x.reset();
    CHECK(Numbers({700}).data() == address);
  }
  CHECK(Numbers({700}).data() != address);
}

TEST_CASE("streams keep at most 64 MiB, no block above 4 MiB, and none with a setting of 0") {
  const std::uint64_t before = in_use();
  numbers(index_t(5 * mib / sizeof(float)), 1);
  CHECK(held() == before);
  std::vector<Numbers> all;
  for (int i = 0; i < 40; ++i) all.push_back(Numbers({index_t(3 * mib / sizeof(float))}));
  all.clear();
  CHECK(held() - before <= 64 * mib);
  CHECK(held() > before);
  for (index_t n = 1; n <= 300; ++n) Numbers({n});  // of many sizes
  CHECK(held() - before <= 300 * 300 * sizeof(float));

  const auto with = [&](const char* setting) {
    CHECK(setenv("CLEAVE_CUDA_CACHE_MB", setting, 1) == 0);
    const std::string error = error_of([&] {
      const cuda::StreamGuard guard{cuda::Stream()};
      const std::uint64_t now = held();
      numbers(100, 1);
      CHECK(held() == now);
    });
    CHECK(unsetenv("CLEAVE_CUDA_CACHE_MB") == 0);
    return error;
  };
  CHECK(with("0") == "");
  CHECK(with("much").find("CLEAVE_CUDA_CACHE_MB is 'much'; use MiB >= 0") != std::string::npos);
}

TEST_CASE("what streams keep is freed when they end, and so when their threads end") {
  const std::uint64_t before = in_use();
  {
    const cuda::StreamGuard guard{cuda::Stream()};
    numbers(100, 1);
    CHECK(held() > before);
  }
  CHECK(held() == before);
  std::thread([&] {
    numbers(100, 1);
    CHECK(held() > before);
  }).join();
  CHECK(held() == before);
  std::optional<Numbers> x;
  std::thread([&] {
    x = numbers(100, 3);
    cuda::current_stream().synchronize();
  }).join();
  CHECK(x->to(Host{})(99) == 3);
  x.reset();  // the last use of the thread's stream
  CHECK(held() == before);
}

TEST_CASE("what streams keep is freed when memory runs out, and for other libraries") {
  static_cast<void>(in_use());
  cuda::release_idle();
  std::size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  cuda_stand_in::set_memory(total - free + 64 * mib);
  const index_t part = index_t(4 * mib / sizeof(float));
  const auto keep = [&] {
    std::vector<Numbers> all;
    for (int i = 0; i < 7; ++i) all.push_back(numbers(part, 1));  // work that has not run
    all.clear();
  };
  const cuda::Stream other;
  {
    const cuda::StreamGuard guard(other);
    keep();
  }
  keep();
  CHECK(numbers(15 * part, 7).to(Host{})(15 * part - 1) == 7);
  keep();
  cuda::release_idle();
  void* data = nullptr;
  CHECK(cudaMallocAsync(&data, 60 * mib, cuda::current_stream().get()) == cudaSuccess);
  CHECK(cudaFreeAsync(data, cuda::current_stream().get()) == cudaSuccess);
  static_cast<void>(in_use());
  cuda_stand_in::set_memory(0);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("what another stream keeps is freed after the work that uses it") {
  const std::uint64_t before = in_use();
  const cuda::Stream other(cuda::Stream::Kind::communication);
  {
    const cuda::StreamGuard guard(other);
    const Numbers x({100});
    other.synchronize();
    x.fill_(1);  // has not run
  }
  cuda::release_idle();
  CHECK(held() == before);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("pools are trimmed without a wait for work, whose memory stays") {
  const std::uint64_t before = in_use();
  {
    const cuda_stand_in::Recording recording;
    numbers(100, 1);  // has not run
    cuda::detail::trim_pools();
    CHECK(calls_of(recording, "Synchronize") == 0);
  }
  CHECK(held() > before);
  CHECK(cudaGetLastError() == cudaSuccess);
  cuda::detail::trim_pools();
  CHECK(held() == before);
}

TEST_CASE("a capture neither takes memory that its stream keeps nor frees it") {
  const Numbers result({200});
  {
    const Numbers kept({200});
  }
  std::optional<Numbers> outside = numbers(200, 1);
  const void* inside = nullptr;
  const void* const freed = outside->data();
  const cuda::Graph step([&] {
    outside.reset();  // the stream keeps it
    const Numbers large = numbers(200, 6);
    inside = large.data();
    result.copy_(large);
    std::thread([] { cuda::release_idle(); }).join();  // of another thread: not these
  });
  CHECK(inside != freed);
  CHECK(cudaGetLastError() == cudaSuccess);
  const Numbers after = numbers(200, 8);
  CHECK(after.data() == freed);
  step.launch();
  CHECK(result.to(Host{})(199) == 6);
  CHECK(after.to(Host{})(199) == 8);
  CHECK(cuda_stand_in::take_faults() == "");
}

}  // namespace freed_blocks_test
