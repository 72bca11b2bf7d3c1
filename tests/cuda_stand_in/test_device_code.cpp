// Kernels as nvcc compiled them: indices, barriers, shared memory, atomics, warps, limits of a
// launch, and mistakes that are found.
#include <complex>
#include <numeric>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

constexpr ThreadOrder orders[] = {ThreadOrder::forward, ThreadOrder::reversed,
                                  ThreadOrder::shuffled};

using Complex = std::complex<double>;

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

__global__ void meet_at_different_barriers(int* values) {
  if (threadIdx.x == 0) {
    __syncthreads();
    values[0] = 1;
  } else {
    __syncthreads();
  }
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

__global__ void sum_of_warp(int* values) {
  int sum = values[threadIdx.x];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  values[threadIdx.x] = sum;
}

__global__ void sum_of_half_a_warp(int* values) {
  if (threadIdx.x < 16) values[threadIdx.x] = __shfl_xor_sync(0xffffffffu, values[threadIdx.x], 1);
}

template <bool Complete>
__global__ void multiply(Complex* x) {
  const Complex a = x[threadIdx.x];
  // nvcc drops operators of std::complex without a word; this drops the imaginary parts.
  const double cross = Complete ? 2 * a.real() * a.imag() : 0;
  x[threadIdx.x] = Complex(a.real() * a.real() - (Complete ? a.imag() * a.imag() : 0), cross);
}

__global__ void copy_pack(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

__global__ void read_clock(long long* to) { *to = clock64(); }

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
    reverse_blocks<T><<<3, 64, 0, stream>>>(array.data, true);
    CHECK(array.read(stream) == expected);
    CHECK(says(fault_of(64, reverse_blocks<T>, array.data, false), "reverse_blocks",
               "a race in shared memory: byte "));
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

TEST_CASE("a barrier that some threads skip, or that is not the same for all, is a fault") {
  const Fresh fresh;
  const Array<int> array(std::vector<int>(8));
  CHECK(says(fault_of(8, part_at_barrier, array.data), "part_at_barrier",
             "4 threads of a block wait at a barrier that 4 of its threads skipped"));
  CHECK(array.read(nullptr) == std::vector<int>(8));
  CHECK(says(fault_of(4, meet_at_different_barriers, array.data), "meet_at_different_barriers",
             "threads of a block wait at different barriers"));
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

TEST_CASE("threads of a warp exchange values; a thread that does not is a fault") {
  const Fresh fresh;
  std::vector<int> values(64), expected(64);
  std::iota(values.begin(), values.end(), 3);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t k = 0; k < 32; ++k) expected[i] += values[i / 32 * 32 + k];
  const Array<int> array(values);
  CHECK_CUDA(launch_on(nullptr, 1, 64, sum_of_warp, array.data));
  CHECK(array.read(nullptr) == expected);
  CHECK(says(fault_of(32, sum_of_half_a_warp, array.data), "sum_of_half_a_warp",
             "not all threads of the mask reach this instruction of a warp"));
}

TEST_CASE("a complex product without its imaginary parts has other values") {
  const Fresh fresh;
  const std::vector<Complex> values{{2, 3}, {-1, 0.5}};
  const std::vector<Complex> squares{{-5, 12}, {0.75, -1}};
  const Array<Complex> right(values), wrong(values);
  CHECK_CUDA(launch_on(nullptr, 1, 2, multiply<true>, right.data));
  CHECK_CUDA(launch_on(nullptr, 1, 2, multiply<false>, wrong.data));
  CHECK(right.read(nullptr) == squares);
  CHECK(wrong.read(nullptr) != squares);
}

TEST_CASE("an access that is not aligned to its size is a fault") {
  const Fresh fresh;
  const Array<float> from(std::vector<float>{1, 2, 3, 4, 5}), to(4);
  CHECK(says(fault_of(1, copy_pack, to.data, from.data + 1), "copy_pack",
             "an access of 16 bytes at 0x"));
  CHECK_CUDA(launch_on(nullptr, 1, 1, copy_pack, to.data, from.data));
  CHECK(to.read(nullptr) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("an access beyond an array, or to what is not device memory, is a fault") {
  const Fresh fresh(2);
  const char* const unusable = "an access of 4 bytes at ";
  const Array<int> array(std::vector<int>(100));
  CHECK(says(fault_of(128, increment, array.data, 101), "increment", "thread (100, 0, 0)"));
  CHECK(says(fault_of(1, increment, array.data - 1, 1), "increment", unusable));
  int on_host = 0;
  CHECK(says(fault_of(1, increment, &on_host, 1), "increment", unusable));
  CHECK(says(fault_of(1, increment, static_cast<int*>(nullptr), 1), "increment", unusable));
}

TEST_CASE("a kernel touches another device's memory only with access to it") {
  const Fresh fresh(2);
  CHECK_CUDA(cudaSetDevice(1));
  const Array<int> on_second(std::vector<int>{1});
  void* in_pool = nullptr;
  const Stream second;
  CHECK_CUDA(cudaMallocAsync(&in_pool, sizeof(int), second));
  CHECK_CUDA(cudaStreamSynchronize(second));
  CHECK_CUDA(cudaSetDevice(0));
  int* const pooled = static_cast<int*>(in_pool);
  const auto touch = [](int* data) {
    CHECK_CUDA(launch_on(nullptr, 1, 1, increment, data, 1));
    CHECK_CUDA(cudaDeviceSynchronize());
  };
  CHECK(says(fault_of(1, increment, on_second.data, 1), "increment", "usable device memory"));
  CHECK(says(fault_of(1, increment, pooled, 1), "increment", "usable device memory"));

  // Peer access does not include pools, whose access is set per pool.
  CHECK_CUDA(cudaDeviceEnablePeerAccess(1, 0));
  CHECK_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  touch(on_second.data);
  CHECK(says(fault_of(1, increment, pooled, 1), "increment", "usable device memory"));
  CHECK_CUDA(set_pool_access(1, 0));
  touch(pooled);
  CHECK_CUDA(cudaFreeAsync(in_pool, second));
  CHECK_CUDA(cudaStreamSynchronize(second));
}

TEST_CASE("an instruction that the interpreter lacks is an error, not a guess") {
  const Fresh fresh;
  const Array<long long> array(1);
  CHECK_ERROR(launch_on(nullptr, 1, 1, read_clock, array.data), cudaErrorNotSupported);
  CHECK(take_faults().find("clock64 is outside the interpreted subset of PTX") !=
        std::string::npos);
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
