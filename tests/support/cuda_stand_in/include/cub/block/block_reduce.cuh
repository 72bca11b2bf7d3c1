// Takes the place of CUB's header of this name: reductions over the threads of a block.
//
// As there, the result is defined for thread 0 alone (the others get poison), operands keep the
// order of the threads, and the storage may be used again only after another barrier: in an order
// of threads other than forward, a missing one shows.
#pragma once

#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};

template <class T, int ThreadsX, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int ThreadsY = 1, int ThreadsZ = 1>
class BlockReduce {
  static_assert(std::is_trivially_copyable_v<T>, "values travel through shared memory");
  static constexpr int threads = ThreadsX * ThreadsY * ThreadsZ;

 public:
  /// One value of each thread.
  struct TempStorage {
    alignas(T) unsigned char bytes[std::size_t(threads)][sizeof(T)];
  };

  explicit BlockReduce(TempStorage& storage)
      : storage_(storage),
        rank_(int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % threads) {
    cuda_stand_in::require_block(ThreadsX, ThreadsY, ThreadsZ);
  }

  template <class Op>
  T Reduce(T value, Op op) {
    return Reduce(value, op, threads);
  }

  /// Of the first `valid` threads, at least one.
  template <class Op>
  T Reduce(T value, Op op, int valid) {
    std::memcpy(storage_.bytes[rank_], &value, sizeof(T));
    __syncthreads();
    T result;
    std::memset(static_cast<void*>(&result), 0xCD, sizeof(T));
    if (rank_ != 0) return result;
    result = stored(0);
    for (int i = 1; i < valid; ++i) result = op(result, stored(i));
    return result;
  }

  /// Of all values of all threads, each thread's own first.
  template <int Items, class Op>
  T Reduce(T (&values)[Items], Op op) {
    T own = values[0];
    for (int i = 1; i < Items; ++i) own = op(own, values[i]);
    return Reduce(own, op);
  }

  T Sum(T value) { return Reduce(value, add); }
  T Sum(T value, int valid) { return Reduce(value, add, valid); }
  template <int Items>
  T Sum(T (&values)[Items]) {
    return Reduce(values, add);
  }

 private:
  static T add(const T& a, const T& b) { return a + b; }

  T stored(int rank) const {
    T value;
    std::memcpy(static_cast<void*>(&value), storage_.bytes[rank], sizeof(T));
    return value;
  }

  TempStorage& storage_;
  int rank_;
};

}  // namespace cub
