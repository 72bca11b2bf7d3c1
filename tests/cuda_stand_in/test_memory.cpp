// Device memory: poison, lifetimes in stream order, pools, pinned memory.
#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// Allocates device memory in stream order; the test frees it.
int* allocate_on(cudaStream_t stream, std::size_t count) {
  void* data = nullptr;
  CHECK_CUDA(cudaMallocAsync(&data, count * sizeof(int), stream));
  return static_cast<int*>(data);
}

int read_one(const int* data, cudaStream_t stream) {
  int value = 0;
  CHECK_CUDA(cudaMemcpyAsync(&value, data, sizeof(int), cudaMemcpyDeviceToHost, stream));
  return value;
}

/// The kernel enqueued last accesses memory that it may not.
void check_unusable(cudaStream_t stream) {
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  CHECK(take_faults().find("is not within usable device memory") != std::string::npos);
  reset();
}

}  // namespace

TEST_CASE("fresh memory is poisoned, from either allocator") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(3);
  CHECK(array.read(stream) == std::vector(3, poisoned_int));
  int* data = allocate_on(stream, 1);
  CHECK(read_one(data, stream) == poisoned_int);
  CHECK_CUDA(cudaFreeAsync(data, stream));
}

TEST_CASE("a kernel of another stream uses memory only after its allocation in stream order") {
  const Fresh fresh;
  const Stream owner, other;
  const Event allocated;
  for (const bool with_event : {true, false}) {
    int* data = allocate_on(owner, 1);
    CHECK_CUDA(cudaEventRecord(allocated, owner));
    if (with_event) CHECK_CUDA(cudaStreamWaitEvent(other, allocated, 0));
    CHECK_CUDA(launch_on(other, 1, 1, assign, data, 1, 3));
    if (with_event) {
      CHECK_CUDA(cudaStreamSynchronize(other));
      CHECK(read_one(data, owner) == 3);
    } else {
      check_unusable(other);
    }
    CHECK_CUDA(cudaFreeAsync(data, owner));
  }
}

TEST_CASE("a copy from memory freed earlier in stream order makes the device fail") {
  const Fresh fresh;
  const Stream owner, other;
  for (const bool with_event : {true, false}) {
    const Array<int> result(1);
    const Event read;
    int* data = allocate_on(owner, 1);
    CHECK_CUDA(launch_on(owner, 1, 1, assign, data, 1, 3));
    const Event written;
    CHECK_CUDA(cudaEventRecord(written, owner));
    CHECK_CUDA(cudaStreamWaitEvent(other, written, 0));
    CHECK_CUDA(cudaMemcpyAsync(result.data, data, sizeof(int), cudaMemcpyDeviceToDevice, other));
    if (with_event) {
      CHECK_CUDA(cudaEventRecord(read, other));
      CHECK_CUDA(cudaStreamWaitEvent(owner, read, 0));
    }
    CHECK_CUDA(cudaFreeAsync(data, owner));
    CHECK_CUDA(cudaStreamSynchronize(owner));
    if (with_event) {
      CHECK(result.read(other) == std::vector{3});
    } else {
      CHECK_ERROR(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
      CHECK(take_faults().find("a copy of 4 bytes touches memory that is freed") !=
            std::string::npos);
      reset();
    }
  }
}

TEST_CASE("a kernel that uses memory after it is freed in stream order makes the device fail") {
  const Fresh fresh;
  const Stream owner, other;
  int* data = allocate_on(owner, 1);
  CHECK_CUDA(launch_on(owner, 1, 1, assign, data, 1, 3));
  CHECK_CUDA(cudaFreeAsync(data, owner));
  CHECK_CUDA(cudaStreamSynchronize(owner));
  CHECK_CUDA(launch_on(other, 1, 1, increment, data, 1));
  check_unusable(other);
}

TEST_CASE("cudaFree waits for the device") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> result(1);
  {
    const Array<int> source(std::vector<int>{8});
    CHECK_CUDA(
        cudaMemcpyAsync(result.data, source.data, sizeof(int), cudaMemcpyDeviceToDevice, stream));
  }
  CHECK(pending_operations() == 0);
  CHECK(result.read(stream) == std::vector{8});
}

TEST_CASE("freeing memory twice, from its middle, or without an allocation is refused") {
  const Fresh fresh;
  const Stream stream;
  int* data = allocate_on(stream, 2);
  CHECK_ERROR(cudaFreeAsync(data + 1, stream), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFreeAsync(data, stream));
  CHECK_ERROR(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  CHECK_ERROR(cudaFree(data), cudaErrorInvalidValue);
  int on_host = 0;
  CHECK_ERROR(cudaFree(&on_host), cudaErrorInvalidValue);
  const Array<int> array(1);
  CHECK_ERROR(cudaFreeAsync(array.data, stream), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(nullptr));
}

TEST_CASE("exhausted memory is an error, and freed memory is available again") {
  const Fresh fresh;
  const Stream stream;
  std::size_t free = 0, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&free, &total));
  void* data = nullptr;
  CHECK_ERROR(cudaMalloc(&data, total + 1), cudaErrorMemoryAllocation);
  for (int i = 0; i < 4; ++i) {
    CHECK_CUDA(cudaMallocAsync(&data, total / 2, stream));
    CHECK_CUDA(cudaFreeAsync(data, stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(stream));
  std::size_t free_again = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_again, &total));
  CHECK(free_again == free);
}

TEST_CASE("the pool of a device counts what is in use") {
  const Fresh fresh;
  const Stream stream;
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t before = 0, during = 0;
  CHECK_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
  void* data = nullptr;
  CHECK_CUDA(cudaMallocFromPoolAsync(&data, 1000, pool, stream));
  CHECK_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &during));
  CHECK(during == before + 1000);
  CHECK_CUDA(cudaFreeAsync(data, stream));
}

TEST_CASE(
    "a pool that keeps its memory is in the way of larger blocks and of others, until trimmed") {
  constexpr std::size_t mib = std::size_t(1) << 20;
  const Fresh fresh;
  set_memory(64 * mib);
  const Stream stream, other;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {.type = cudaMemLocationTypeDevice, .id = 0};
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaMemPoolCreate(&pool, &properties));
  std::uint64_t keep = UINT64_MAX;
  CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  void* blocks[4] = {};
  void* data = nullptr;
  for (void*& block : blocks) CHECK_CUDA(cudaMallocFromPoolAsync(&block, 15 * mib, pool, stream));
  CHECK_CUDA(cudaFreeAsync(blocks[0], stream));
  CHECK_CUDA(cudaFreeAsync(blocks[2], stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  // two gaps, neither of which is large enough
  CHECK_ERROR(cudaMallocFromPoolAsync(&data, 20 * mib, pool, stream), cudaErrorMemoryAllocation);
  CHECK_ERROR(cudaMalloc(&data, 10 * mib), cudaErrorMemoryAllocation);
  CHECK_CUDA(cudaMallocFromPoolAsync(&data, 15 * mib, pool, stream));
  CHECK_CUDA(cudaFreeAsync(data, other));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));  // the host does not know that it is free
  CHECK_ERROR(cudaMallocFromPoolAsync(&data, 20 * mib, pool, stream), cudaErrorMemoryAllocation);
  CHECK_CUDA(cudaStreamSynchronize(other));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  std::size_t free = 0, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&free, &total));
  CHECK(total == 64 * mib);
  CHECK(free / mib == 64 - 2 * 15 - 1);  // the last one for what separates blocks
  CHECK_CUDA(cudaMallocFromPoolAsync(&data, 20 * mib, pool, stream));
  CHECK_CUDA(launch_on(stream, 1, 1, assign, static_cast<int*>(data), 1, 3));
  CHECK(read_one(static_cast<int*>(data), stream) == 3);
  for (void* block : {blocks[1], blocks[3], data}) CHECK_CUDA(cudaFreeAsync(block, stream));
  // by default, a pool gives its memory back when the host waits
  CHECK_CUDA(cudaMallocAsync(&data, 1 * mib, stream));
  CHECK_CUDA(cudaFreeAsync(data, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  CHECK_CUDA(cudaMemGetInfo(&free, &total));
  CHECK(free == total);
}

TEST_CASE("the attributes of a pointer describe the memory that it points to") {
  const Fresh fresh(2);
  CHECK_CUDA(cudaSetDevice(1));
  cudaPointerAttributes attributes;
  {
    const Array<int> array(4);
    CHECK_CUDA(cudaPointerGetAttributes(&attributes, array.data + 2));
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK(attributes.device == 1);
  }
  void* pinned = nullptr;
  CHECK_CUDA(cudaHostAlloc(&pinned, 100, cudaHostAllocDefault));
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, pinned));
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_ERROR(cudaFreeHost(pinned), cudaErrorInvalidValue);
  std::vector<int> own(100);
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, own.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK_CUDA(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterDefault));
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, own.data() + 50));
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK_CUDA(cudaHostUnregister(own.data()));
  CHECK_ERROR(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
}
