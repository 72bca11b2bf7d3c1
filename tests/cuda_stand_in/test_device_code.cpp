// Kernels: indices, barriers, shared memory, atomics, limits of a launch.
#include <numeric>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

constexpr ThreadOrder orders[] = {ThreadOrder::forward, ThreadOrder::reversed,
                                  ThreadOrder::shuffled};

__global__ void write_indices(int* to) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  to[block * threads + thread] = int(block * 1000 + thread);
}

template <class T>
__global__ void reverse_blocks(T* values, bool with_barrier) {
  __shared__ T tile[64];
  tile[threadIdx.x] = values[blockIdx.x * 64 + threadIdx.x];
  if (with_barrier) __syncthreads();
  values[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void part_at_barrier(int* values) {
  if (threadIdx.x % 2 == 0) return;
  __syncthreads();
  values[threadIdx.x] = 1;
}

__global__ void meet_at_different_barriers(int*) {
  if (threadIdx.x == 0) __syncthreads();
  else __syncthreads();
}

__global__ void many_barriers(int* values, int rounds) {
  __shared__ int tile[32];
  tile[threadIdx.x] = int(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    const int next = tile[(threadIdx.x + 1) % 32];
    __syncthreads();
    tile[threadIdx.x] = next;
  }
  values[threadIdx.x] = tile[threadIdx.x];
}

__global__ void count_and_set(unsigned* result, unsigned long long* wide, float* sum) {
  atomicAdd(&result[0], 1);
  if (atomicCAS(&result[1], 0, 1) == 0) result[2] = 99;
  atomicOr(wide, 1ull << (threadIdx.x + 30));
  atomicAdd(sum, 0.5f);
}

}  // namespace

TEST_CASE("every thread of every block runs once, with its indices") {
  const Fresh fresh;
  const Stream stream;
  const dim3 blocks(3, 2, 2), threads(4, 3, 2);
  for (const ThreadOrder order : orders) {
    set_thread_order(order);
    const Array<int> array(12 * 24);
    CHECK_CUDA(launch_on(stream, blocks, threads, write_indices, array.data));
    std::vector<int> expected;
    for (int block = 0; block < 12; ++block)
      for (int thread = 0; thread < 24; ++thread) expected.push_back(block * 1000 + thread);
    CHECK(array.read(stream) == expected);
  }
}

TEST_CASE_TEMPLATE("threads exchange values through shared memory across a barrier", T, int,
                   double) {
  const Fresh fresh;
  const Stream stream;
  for (const ThreadOrder order : orders) {
    set_thread_order(order);
    std::vector<T> values(192), expected;
    std::iota(values.begin(), values.end(), T(0));
    for (int block = 0; block < 3; ++block)
      for (int i = 63; i >= 0; --i) expected.push_back(T(block * 64 + i));
    const Array<T> array(values);
    CHECK_CUDA(launch_on(stream, 3, 64, reverse_blocks<T>, array.data, true));
    CHECK(array.read(stream) == expected);
    const Array<T> racing(values);
    CHECK_CUDA(launch_on(stream, 3, 64, reverse_blocks<T>, racing.data, false));
    CHECK(racing.read(stream) != expected);
  }
}

TEST_CASE("a thread may pass barriers many times") {
  const Fresh fresh;
  const Stream stream;
  for (const ThreadOrder order : orders) {
    set_thread_order(order);
    const Array<int> array(32);
    CHECK_CUDA(launch_on(stream, 1, 32, many_barriers, array.data, 45));
    std::vector<int> expected;
    for (int i = 0; i < 32; ++i) expected.push_back((i + 45) % 32);
    CHECK(array.read(stream) == expected);
  }
}

TEST_CASE("a barrier that some threads skip makes the kernel fail") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>(8));
  CHECK_CUDA(launch_on(stream, 1, 8, part_at_barrier, array.data));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  CHECK(take_faults().find("4 threads of a block wait at a barrier (") != std::string::npos);
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  reset();
  CHECK(array.read(stream) == std::vector<int>(8));
}

TEST_CASE("threads that wait at different barriers make the kernel fail") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(1);
  CHECK_CUDA(launch_on(stream, 1, 4, meet_at_different_barriers, array.data));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  CHECK(take_faults().find("threads of a block wait at different barriers") != std::string::npos);
  reset();
}

TEST_CASE("atomic operations combine the values of all threads") {
  const Fresh fresh;
  const Stream stream;
  const Array<unsigned> result(std::vector<unsigned>{0, 0, 0});
  const Array<unsigned long long> wide(std::vector<unsigned long long>{1});
  const Array<float> sum(std::vector<float>{0});
  CHECK_CUDA(launch_on(stream, 3, 8, count_and_set, result.data, wide.data, sum.data));
  CHECK(result.read(stream) == std::vector{24u, 1u, 99u});
  CHECK(wide.read(stream) == std::vector{(0xffull << 30) | 1});
  CHECK(sum.read(stream) == std::vector{12.0f});
}

TEST_CASE("a launch beyond the limits of the device is refused") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(1);
  const auto launch = [&](dim3 blocks, dim3 threads) {
    return launch_on(stream, blocks, threads, increment, array.data, 0);
  };
  CHECK_CUDA(launch(dim3(100, 1, 3), dim3(32, 16, 2)));
  CHECK_CUDA(launch(dim3(1, 2), 1024));
  CHECK_ERROR(launch(0, 32), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(1, 0), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(1, 1025), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(1, dim3(32, 33)), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(dim3(1, 65536), 1), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(dim3(1, 1, 65536), 1), cudaErrorInvalidConfiguration);
  CHECK_ERROR(launch(0x80000000u, 1), cudaErrorInvalidConfiguration);
  CHECK_ERROR(cudaGetLastError(), cudaErrorInvalidConfiguration);
  CHECK_ERROR(cudaGetLastError(), cudaSuccess);
}

TEST_CASE("a kernel's arguments are copied at the launch") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>{0, 0, 0});
  int value = 4;
  CHECK_CUDA(launch_on(stream, 1, 3, assign, array.data, 3, value));
  value = 5;
  CHECK(array.read(stream) == std::vector{4, 4, 4});
}
