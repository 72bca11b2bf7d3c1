// Votes, matches and synchronization within warps, and reductions at barriers.
#include <string>
#include <vector>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

constexpr int vote_results = 9;

__global__ void vote(unsigned* results) {
  const unsigned all = 0xffffffffu, lane = threadIdx.x % 32;
  unsigned* const to = results + vote_results * threadIdx.x;
  int equal = 0;
  to[0] = __ballot_sync(all, threadIdx.x % 3 == 0);
  to[1] = unsigned(__all_sync(all, threadIdx.x < 40));
  to[2] = unsigned(__any_sync(all, threadIdx.x == 40));
  to[3] = __match_any_sync(all, threadIdx.x / 5);
  to[4] = __match_any_sync(all, (1ull << 40) * (lane % 2));
  to[5] = __match_all_sync(all, threadIdx.x / 32, &equal);
  if (equal == 0) to[5] += 7;
  to[6] = __match_all_sync(all, threadIdx.x < 40, &equal);
  if (equal == 0) to[6] += 7;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(to[7]));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(to[8]));
}

__global__ void vote_at_barrier(int* results) {
  int* const to = results + 3 * threadIdx.x;
  to[0] = __syncthreads_count(int(threadIdx.x % 3 == 0));
  to[1] = __syncthreads_and(int(threadIdx.x < 63));
  to[2] = __syncthreads_or(int(threadIdx.x == 63));
}

/// Twice exchanges values with the thread whose number differs in the bits `by`; synchronizes the
/// warp after writing if the first bit of `synchronized` is set, after reading if the second is.
__global__ void exchange(int* values, unsigned by, int synchronized) {
  __shared__ int tile[64];
  int value = values[threadIdx.x];
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = value;
    if ((synchronized & 1) != 0) __syncwarp();
    value = 10 * tile[threadIdx.x ^ by];
    if ((synchronized & 2) != 0) __syncwarp();
  }
  values[threadIdx.x] = value;
}

}  // namespace

TEST_CASE("votes and matches answer for all threads of a warp") {
  const Fresh fresh;
  const Array<unsigned> array(64 * vote_results);
  CHECK_CUDA(launch_on(nullptr, 1, 64, vote, array.data));
  const std::vector<unsigned> found = array.read(nullptr);
  for (unsigned i = 0; i < 64; ++i) {
    unsigned thirds = 0, fifths = 0, parity = 0, up_to = 0;
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned other = i / 32 * 32 + k, bit = 1u << k;
      if (other % 3 == 0) thirds |= bit;
      if (other / 5 == i / 5) fifths |= bit;
      if (other % 2 == i % 2) parity |= bit;
      if (other <= i) up_to |= bit;
    }
    const bool first = i < 32;
    const unsigned all = 0xffffffffu;
    const std::vector<unsigned> expected = {thirds,           first, !first, fifths, parity, all,
                                            first ? all : 7u, up_to, ~up_to};
    for (unsigned k = 0; k < vote_results; ++k) {
      CAPTURE(i);
      CAPTURE(k);
      CHECK(found[i * vote_results + k] == expected[k]);
    }
  }
}

TEST_CASE("a barrier counts threads, and combines their predicates") {
  const Fresh fresh;
  const Array<int> array(64 * 3);
  CHECK_CUDA(launch_on(nullptr, 1, 64, vote_at_barrier, array.data));
  const std::vector<int> found = array.read(nullptr);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == (i % 3 == 0 ? 22 : i % 3 == 1 ? 0 : 1));
}

TEST_CASE("shared memory passes values within warps that synchronize, not between them") {
  const Fresh fresh;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reversed, ThreadOrder::shuffled}) {
    set_thread_order(order);
    std::vector<int> values, expected;
    for (int i = 0; i < 64; ++i) values.push_back(i), expected.push_back(100 * i);
    const Array<int> array(values);
    CHECK_CUDA(launch_on(nullptr, 1, 64, exchange, array.data, 5u, 3));
    CHECK(array.read(nullptr) == expected);
    const char* const race = "a race in shared memory: byte ";
    CHECK(says(fault_of(64, exchange, array.data, 5u, 0), "exchange", race));
    CHECK(says(fault_of(64, exchange, array.data, 5u, 1), "exchange", race));
    CHECK(says(fault_of(64, exchange, array.data, 5u, 2), "exchange", race));
    CHECK(says(fault_of(64, exchange, array.data, 37u, 3), "exchange", race));
  }
}
