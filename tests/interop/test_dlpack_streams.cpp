// GPU tensors and DLPack in stream order: on the stand-in, where work runs late, and freed memory
// is poisoned.
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>
#include <cleave/interop/dlpack_cuda.hpp>

#include "cuda_memory.hpp"
#include "errors.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::in_use;

namespace shared_device_arrays {
namespace {

constexpr index_t length = 64;
constexpr std::uint64_t bytes = length * sizeof(float);

/// The elements at `data`, read on a stream that knows of no other.
float last_of(const float* data, const cuda::Stream& stream) {
  float value = 0;
  CHECK(cudaMemcpyAsync(&value, data + length - 1, sizeof value, cudaMemcpyDeviceToHost,
                        stream.get()) == cudaSuccess);
  stream.synchronize();
  return value;
}

}  // namespace

TEST_CASE("the consumer of an exported GPU tensor sees what was written to it before") {
  const cuda::Stream consumer(cuda::Stream::Kind::communication);
  const Tensor<float, 1, Cuda> x({length});
  x.fill_(3);
  auto* const managed = dlpack::to_dlpack(x, consumer.get());
  CHECK(managed->dl_tensor.data == x.data());
  CHECK(managed->dl_tensor.device.device_type == 2);
  CHECK(managed->dl_tensor.device.device_id == cuda::current_device());
  CHECK(last_of(x.data(), consumer) == 3);
  managed->deleter(managed);
}

TEST_CASE("memory that a consumer releases is freed after the consumer's work") {
  const std::uint64_t before = in_use();
  const cuda::Stream consumer(cuda::Stream::Kind::communication);
  const Tensor<float, 1, Cuda> result({length});
  dlpack::ManagedVersioned* managed = nullptr;
  {
    const Tensor<float, 1, Cuda> x({length});
    x.fill_(5);
    managed = dlpack::to_dlpack(x, consumer.get());
    CHECK(cudaMemcpyAsync(result.data(), x.data(), bytes, cudaMemcpyDeviceToDevice,
                          consumer.get()) == cudaSuccess);
  }
  managed->deleter(managed);
  const Tensor<float, 1, Cuda> next({length});  // may reuse the memory
  next.fill_(-1);
  cuda::current_stream().synchronize();
  CHECK(last_of(result.data(), consumer) == 5);
  CHECK(in_use() == before + 2 * bytes);
}

TEST_CASE("an adopted GPU array is read after its producer's work, and released after ours") {
  const cuda::Stream producer(cuda::Stream::Kind::communication);
  Tensor<float, 1, Cuda> memory;  // freed in the order of the producer's stream
  {
    const cuda::StreamGuard guard(producer);
    memory = Tensor<float, 1, Cuda>({length});
    memory.fill_(7);
  }
  const float* const address = memory.data();
  std::int64_t extent = length;
  int deleted = 0;
  struct Context {
    Tensor<float, 1, Cuda>& memory;
    int& deleted;
  } context{memory, deleted};
  dlpack::ManagedVersioned managed{};
  managed.version = {1, 0};
  managed.manager_ctx = &context;
  managed.dl_tensor = {
      memory.data(), {2, cuda::current_device()}, 1, {2, 32, 1}, &extent, nullptr, 0};
  managed.deleter = [](dlpack::ManagedVersioned* self) {
    auto& of = *static_cast<Context*>(self->manager_ctx);
    ++of.deleted;
    of.memory = {};
  };
  const Tensor<float, 1, Cuda> result({length});
  managed.flags = 1;
  CHECK(contains(error_of([&] { dlpack::from_dlpack<float, 1>(&managed, Cuda{}, producer.get()); }),
                 "the array is read-only"));
  CHECK(dlpack::copy_dlpack<float, 1>(&managed, Cuda{}, producer.get()).to(Host{})(0) == 7);
  managed.flags = 0;
  {
    const auto x = dlpack::from_dlpack<float, 1>(&managed, Cuda{}, producer.get());
    CHECK(x.data() == address);
    result.copy_(x);
    CHECK(deleted == 0);
  }
  CHECK(deleted == 1);
  producer.synchronize();  // frees the memory, after the copy
  CHECK(last_of(result.data(), cuda::current_stream()) == 7);
}

TEST_CASE("arrays of the host and of another GPU are not adopted as GPU tensors") {
  const Tensor<float, 1> x({length});
  auto* const managed = dlpack::to_dlpack(x);
  const auto adopt = [&] { dlpack::from_dlpack<float, 1>(managed, Cuda{}, nullptr); };
  CHECK(
      contains(error_of(adopt), "device 0 of DLPack's type 1, not in memory of this rank's cuda"));
  managed->dl_tensor.device = {2, 7};
  CHECK(contains(error_of(adopt), "device 7 of DLPack's type 2"));
  managed->deleter(managed);
}

}  // namespace shared_device_arrays
