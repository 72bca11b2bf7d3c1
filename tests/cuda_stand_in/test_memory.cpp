// Device memory: poison, lifetimes in stream order, access to other devices' memory, pools.
#include "device.hpp"

using namespace cuda_stand_in;

namespace {

constexpr std::size_t mib = std::size_t(1) << 20;
constexpr const char* unusable = "is not within usable device memory";

/// Allocates an int in stream order; the test frees it.
int* allocate_on(cudaStream_t stream) {
  void* data = nullptr;
  CHECK_CUDA(cudaMallocAsync(&data, sizeof(int), stream));
  return static_cast<int*>(data);
}

/// Lets kernels of device 0 access the default pool of device 1.
cudaError_t set_pool_access() {
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 1));
  cudaMemAccessDesc access{};
  access.location = {.type = cudaMemLocationTypeDevice, .id = 0};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  return cudaMemPoolSetAccess(pool, &access, 1);
}

}  // namespace

TEST_CASE_FIXTURE(Setup, "fresh memory is poisoned, from either allocator") {
  CHECK(Array<int>(3).read(stream) == std::vector(3, poisoned_int));
  int* const data = allocate_on(stream);
  CHECK(read(stream, data) == poisoned_int);
  CHECK_CUDA(cudaFreeAsync(data, stream));
}

TEST_CASE_FIXTURE(Setup, "memory is usable from its allocation to its release, in stream order") {
  for (const bool reads : {true, false}) {
    int* const data = allocate_on(stream);
    set_to(other, data, 3);
    CHECK_ERROR(cudaStreamSynchronize(other), cudaErrorLaunchFailure);
    CHECK(says(failure(), unusable));
    record(stream, event);
    wait_for(other, event);
    set_to(other, data, 3);
    CHECK(read(other, data) == 3);

    reads ? copy(other, result, data) : copy(other, data, result);  // perhaps after the release
    CHECK_CUDA(cudaFreeAsync(data, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_ERROR(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
    CHECK(says(failure(), "a copy of 4 bytes touches memory that is freed"));
    CHECK(says(fault_of(1, increment, data, 1), unusable));
  }
}

TEST_CASE_FIXTURE(Setup, "cudaFree waits for the device") {
  {
    const Array<int> source{std::vector{8}};
    copy(stream, result, source);
  }
  CHECK(pending_operations() == 0);
  CHECK(read(stream, result) == 8);
}

TEST_CASE_FIXTURE(Setup, "freeing memory twice, from its middle, or unallocated is refused") {
  int* const data = allocate_on(stream);
  CHECK_ERROR(cudaFreeAsync(reinterpret_cast<char*>(data) + 1, stream), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFreeAsync(data, stream));
  CHECK_ERROR(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  CHECK_ERROR(cudaFree(data), cudaErrorInvalidValue);
  CHECK_ERROR(cudaFreeAsync(array, stream), cudaErrorInvalidValue);
  int on_host = 0;
  CHECK_ERROR(cudaFree(&on_host), cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(nullptr));
  CHECK_ERROR(cudaFreeHost(&on_host), cudaErrorInvalidValue);
}

TEST_CASE_FIXTURE(Setup, "a kernel touches another device's memory only with access to it") {
  CHECK_CUDA(cudaSetDevice(1));
  const Array<int> on_second{std::vector{1}};
  const Stream second;
  int* const pooled = allocate_on(second);
  CHECK_CUDA(cudaStreamSynchronize(second));
  CHECK_CUDA(cudaSetDevice(0));
  CHECK(says(fault_of(1, increment, on_second.data, 1), unusable));
  CHECK(says(fault_of(1, increment, pooled, 1), unusable));

  set_peer_access(false);
  CHECK_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
  CHECK_ERROR(set_pool_access(), cudaErrorPeerAccessUnsupported);
  set_peer_access(true);

  // Peer access does not include pools, whose access is set per pool.
  CHECK_CUDA(cudaDeviceEnablePeerAccess(1, 0));
  CHECK_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  add_one(stream, on_second);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(says(fault_of(1, increment, pooled, 1), unusable));
  CHECK_CUDA(set_pool_access());
  add_one(stream, pooled);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaFreeAsync(pooled, second));
  CHECK_CUDA(cudaStreamSynchronize(second));
}

TEST_CASE_FIXTURE(Setup, "exhausted memory is an error, and freed memory is available again") {
  set_memory(64 * mib);
  void* data = nullptr;
  CHECK_ERROR(cudaMalloc(&data, 65 * mib), cudaErrorMemoryAllocation);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) {  // the releases have not run
      CHECK_CUDA(cudaMallocAsync(&data, 40 * mib, stream));
      CHECK_CUDA(cudaFreeAsync(data, stream));
    }
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMalloc(&data, 40 * mib));
    CHECK_CUDA(cudaFree(data));
  }
}

TEST_CASE_FIXTURE(Setup, "what a pool keeps is lost to larger blocks and others until trimmed") {
  set_memory(64 * mib);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {.type = cudaMemLocationTypeDevice, .id = 0};
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaMemPoolCreate(&pool, &properties));
  std::uint64_t keep = UINT64_MAX;
  CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  void* data = nullptr;
  const auto allocate = [&](std::size_t megabytes) {
    return cudaMallocFromPoolAsync(&data, megabytes * mib, pool, stream);
  };
  void* blocks[4] = {};
  for (void*& block : blocks) {
    CHECK_CUDA(allocate(15));
    block = data;
  }
  CHECK_CUDA(cudaFreeAsync(blocks[0], stream));
  CHECK_CUDA(cudaFreeAsync(blocks[2], stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  // two pieces, neither of which is large enough
  CHECK_ERROR(allocate(20), cudaErrorMemoryAllocation);
  CHECK_ERROR(cudaMalloc(&data, 10 * mib), cudaErrorMemoryAllocation);
  CHECK_CUDA(allocate(15));
  CHECK_CUDA(cudaFreeAsync(data, other));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));  // the host does not know that it is free
  CHECK_ERROR(allocate(20), cudaErrorMemoryAllocation);
  CHECK_CUDA(cudaStreamSynchronize(other));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  CHECK_CUDA(allocate(20));
  for (void* block : {blocks[1], blocks[3], data}) CHECK_CUDA(cudaFreeAsync(block, stream));
  // by default, a pool gives its memory back when the host waits
  CHECK_CUDA(cudaMallocAsync(&data, 1 * mib, stream));
  CHECK_CUDA(cudaFreeAsync(data, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  CHECK_CUDA(cudaMalloc(&data, 60 * mib));
  CHECK_CUDA(cudaFree(data));
}
