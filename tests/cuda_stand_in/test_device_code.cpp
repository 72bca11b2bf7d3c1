// Mistakes of kernels, as nvcc compiled them, that are found; limits of a launch. The tests of the
// library's kernels check values.
#include <complex>
#include <set>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

constexpr ThreadOrder orders[] = {ThreadOrder::forward, ThreadOrder::reversed,
                                  ThreadOrder::shuffled};

using Complex = std::complex<double>;

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

/// The values become 1 if any was not 0.
__global__ void any_at_barrier(int* values) {
  values[threadIdx.x] = __syncthreads_or(values[threadIdx.x]) != 0 ? 1 : 0;
}

__global__ void half_a_warp(int* values) {
  if (threadIdx.x < 16) values[threadIdx.x] = __shfl_sync(0xffffffffu, values[threadIdx.x], 1);
}

enum Synchronized { nothing, warp, block };

__device__ void synchronize(Synchronized threads) {
  if (threads == warp) __syncwarp();
  if (threads == block) __syncthreads();
}

/// Twice exchanges values with the thread whose number differs in the bits `by`; synchronizes
/// threads after writing and after reading.
__global__ void exchange(int* values, unsigned by, Synchronized written, Synchronized read) {
  __shared__ int tile[64];
  int value = values[threadIdx.x];
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = value;
    synchronize(written);
    value = 10 * tile[threadIdx.x ^ by];
    synchronize(read);
  }
  values[threadIdx.x] = value;
}

__global__ void pass_without_barrier(int* value) {
  volatile __shared__ int shared;
  if (threadIdx.x == 0) shared = 1;
  else *value = shared;
}

__global__ void number_threads(int* numbers, int* count) {
  numbers[threadIdx.x] = atomicAdd(count, 1);
}

/// nvcc drops operators of std::complex without a word; this drops the imaginary parts.
template <bool Complete>
__global__ void square(Complex* x) {
  const double re = x->real(), im = Complete ? x->imag() : 0;
  *x = Complex(re * re - im * im, 2 * re * im);
}

__global__ void copy_pack(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

__global__ void read_clock(long long* to) { *to = clock64(); }

}  // namespace

TEST_CASE_FIXTURE(Setup, "threads run forward, reversed, or shuffled") {
  const Array<int> numbers(64);
  std::set<std::vector<int>> seen;
  for (const ThreadOrder order : orders) {
    set_thread_order(order);
    set_to(stream, array, 0);
    CHECK_CUDA(launch_on(stream, 1, 64, number_threads, numbers.data, array.data));
    seen.insert(numbers.read(stream));
  }
  CHECK(seen.size() == 3);
}

TEST_CASE_FIXTURE(Setup, "shared memory passes values only between threads that synchronize") {
  for (const ThreadOrder order : orders) {
    set_thread_order(order);
    std::vector<int> values, expected;
    for (int i = 0; i < 64; ++i) values.push_back(i), expected.push_back(100 * i);
    const auto exchanged = [&](unsigned by, Synchronized threads) {
      const Array<int> all(values);
      CHECK_CUDA(launch_on(stream, 1, 64, exchange, all.data, by, threads, threads));
      return all.read(stream);
    };
    CHECK(exchanged(5, warp) == expected);
    CHECK(exchanged(37, block) == expected);
    const auto races = [&](unsigned by, Synchronized written, Synchronized read) {
      const Array<int> all(values);
      return says(fault_of(64, exchange, all.data, by, written, read),
                  "a race in shared memory: byte ");
    };
    CHECK(races(5, warp, nothing));
    CHECK(races(5, nothing, warp));
    CHECK(races(37, warp, warp));
    CHECK(races(37, block, nothing));
    CHECK(races(37, nothing, block));
  }
}

TEST_CASE_FIXTURE(Setup, "a read races with a write by another thread, in any order") {
  CHECK(says(fault_of(2, pass_without_barrier, array.data), "was written by thread 0 since"));
  set_thread_order(ThreadOrder::reversed);
  CHECK(says(fault_of(2, pass_without_barrier, array.data), "was read by thread 1 since"));
}

TEST_CASE_FIXTURE(Setup, "a barrier or an exchange of a warp that some threads skip is a fault") {
  const Array<int> values(std::vector<int>(32));
  const std::string fault = fault_of(8, part_at_barrier, values.data);
  CHECK(says(fault, "4 threads of a block wait at a barrier that 4 of its threads skipped"));
  CHECK(fault.find("kernel of grid 1x1x1 block 8x1x1: ") == 0);
  CHECK(says(fault, "part_at_barrier"));
  CHECK(says(fault, ": block (0, 0, 0), thread ("));
  CHECK(says(fault, " of the PTX: "));
  CHECK(values.read(nullptr) == std::vector<int>(32));
  CHECK(says(fault_of(4, meet_at_different_barriers, values.data),
             "threads of a block wait at different barriers"));
  CHECK(says(fault_of(32, half_a_warp, values.data),
             "not all threads of the mask reach this instruction of a warp"));
}

TEST_CASE_FIXTURE(Setup, "a barrier tells all threads of a block whether one of them asked to") {
  for (const int number : {0, 1}) {
    std::vector<int> values(64);
    values[50] = 4 * number;
    const Array<int> all(values);
    CHECK_CUDA(launch_on(stream, 1, 64, any_at_barrier, all.data));
    CHECK(all.read(stream) == std::vector(64, number));
  }
}

TEST_CASE_FIXTURE(Setup, "a complex product without its imaginary parts has other values") {
  const std::vector<Complex> value{{2, 3}}, squared{{-5, 12}};
  const Array<Complex> right(value), wrong(value);
  CHECK_CUDA(launch_on(stream, 1, 1, square<true>, right.data));
  CHECK_CUDA(launch_on(stream, 1, 1, square<false>, wrong.data));
  CHECK(right.read(stream) == squared);
  CHECK(wrong.read(stream) != squared);
}

TEST_CASE_FIXTURE(Setup, "a misaligned access, one beyond an array, or on the host is a fault") {
  const Array<float> packs(8);
  CHECK(says(fault_of(1, copy_pack, packs.data, packs.data + 1), "an access of 16 bytes at 0x"));
  const Array<int> values(std::vector<int>(100));
  CHECK(says(fault_of(128, increment, values.data, 101), "thread (100, 0, 0)"));
  int on_host = 0;
  for (int* const wrong : {values.data - 1, &on_host, static_cast<int*>(nullptr)})
    CHECK(says(fault_of(1, increment, wrong, 1), "an access of 4 bytes at "));
  CHECK(says(fault_of(64, exchange, values.data, 64u, block, block),
             "is beyond the shared memory of the block"));
}

TEST_CASE_FIXTURE(Setup, "an instruction that the interpreter lacks is an error, not a guess") {
  const Array<long long> time(1);
  CHECK_ERROR(launch_on(stream, 1, 1, read_clock, time.data), cudaErrorNotSupported);
  CHECK(says(take_faults(), "clock64 is outside the interpreted subset of PTX"));
}

TEST_CASE_FIXTURE(Setup, "a launch beyond the limits of the device is refused") {
  const auto launch = [&](dim3 blocks, dim3 threads) {
    return launch_on(stream, blocks, threads, increment, array.data, 0);
  };
  CHECK_CUDA(launch(dim3(100, 1, 3), dim3(32, 16, 2)));
  for (const dim3 threads : {dim3(0), dim3(1025), dim3(32, 33), dim3(1, 1, 65)})
    CHECK_ERROR(launch(1, threads), cudaErrorInvalidConfiguration);
  for (const dim3 blocks : {dim3(0), dim3(0x80000000u), dim3(1, 65536), dim3(1, 1, 65536)})
    CHECK_ERROR(launch(blocks, 32), cudaErrorInvalidConfiguration);
}
