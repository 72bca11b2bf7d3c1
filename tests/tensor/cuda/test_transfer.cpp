// Copies between host and device: which of them use the library's pinned memory, and how much of
// that is kept.
#include <cstddef>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_calls.hpp"

using namespace cleave;

using cleave::testing::calls_of;

namespace {

constexpr index_t staged_elements = 3 << 20;  // three staging buffers

}  // namespace

TEST_CASE("memory that is pinned or registered is copied by one call each way") {
  const auto memory = cuda::allocate_pinned(std::size_t(staged_elements) * sizeof(float));
  std::vector<float> plain(std::size_t(staged_elements), 0.0f);
  REQUIRE(cudaHostRegister(plain.data(), plain.size() * sizeof(float), 0) == cudaSuccess);
  for (float* const data : {static_cast<float*>(memory.get()), plain.data()}) {
    const auto host = Tensor<float, 1>::adopt(data, {staged_elements}, nullptr);
    for (index_t i = 0; i < staged_elements; ++i) host(i) = float(i % 1000);
    const Tensor<float, 1, Cuda> device({staged_elements});
    const cuda_stand_in::Recording recording;
    transfer(Host{}, Cuda{}, host.data(), device.data(),
             std::size_t(staged_elements) * sizeof(float));
    host.fill_(-1);
    transfer(Cuda{}, Host{}, device.data(), host.data(),
             std::size_t(staged_elements) * sizeof(float));
    CHECK(calls_of(recording, "cudaMemcpyAsync") == 2);
    CHECK(host(staged_elements - 1) == float((staged_elements - 1) % 1000));
  }
  CHECK(cudaHostUnregister(plain.data()) == cudaSuccess);
}

TEST_CASE("other memory is staged, in pieces") {
  const Tensor<float, 1> host({staged_elements});
  host.fill_(5);
  const cuda_stand_in::Recording recording;
  const auto device = host.to(Cuda{});
  CHECK(calls_of(recording, "cudaMemcpyAsync") == 3);
  CHECK(device.to(Host{})(staged_elements - 1) == 5);
}

TEST_CASE("the pool of pinned memory keeps some blocks and gives the others back") {
  cuda::PinnedPool& pool = cuda::PinnedPool::get();
  std::vector<std::shared_ptr<void>> blocks;
  const auto take_all = [&] {
    while (blocks.size() < cuda::PinnedPool::max_free + 2) blocks.push_back(pool.take());
  };
  take_all();
  const cuda_stand_in::Recording recording;
  blocks.clear();
  CHECK(calls_of(recording, "cudaFreeHost") == 2);
  take_all();
  CHECK(calls_of(recording, "cudaHostAlloc") == 2);
  for (const cuda_stand_in::Call& call : recording.calls())
    CHECK(call.bytes <= cuda::PinnedPool::block_bytes);
}
