// The kernels of reductions over dimensions: along contiguous memory, and across it.
//
// A thread reduces elements at fixed distances, with loads of several packs in flight; the threads
// that share a result then combine in shared memory, in a fixed tree. Long reductions are split
// over blocks, whose partial results are reduced by a second launch. There are no atomics: the
// order depends on extents and strides alone.
#pragma once

#include <cstdint>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::cuda::detail {

/// The distribution of a reduction over blocks and threads.
struct ReduceGrid {
  std::uint32_t results = 0;  ///< steps of the kept loops
  std::uint32_t steps = 0;    ///< steps of the reduced loops, per result
  std::uint32_t chunk = 0;    ///< steps per block
  std::uint32_t splits = 1;   ///< blocks per result
  FastDivision by_splits{};
  std::uint32_t lanes = 1;  ///< threads per result, a power of two
  bool packed = false;      ///< whether full runs are packs
  index_t cols = 1;         ///< elements of the loop along which packs lie
  std::uint32_t whole = 0;  ///< the first `whole` steps along that loop are known to be full

  /// The partial results of all blocks, contiguous for each result; null if blocks store results.
  void* partials = nullptr;
  std::uint32_t all_splits = 1;
  std::uint32_t first_split = 0;
  index_t first_index = 0;  ///< index of the first reduced element

  /// The steps [begin, end) of a split.
  CLEAVE_HOST_DEVICE std::uint32_t begin(std::uint32_t split) const { return split * chunk; }
  CLEAVE_HOST_DEVICE std::uint32_t end(std::uint32_t split) const {
    return steps - begin(split) < chunk ? steps : begin(split) + chunk;
  }

  /// Stores a block's sum for the result at `at`.
  template <class Result, class A>
  __device__ void put(const Result& result, std::uint32_t split, index_t at, const A& sum) const {
    if (partials == nullptr) result.put(at, sum);
    else static_cast<A*>(partials)[at * all_splits + first_split + split] = sum;
  }
};

/// The number of packs that a thread loads before it uses them.
inline constexpr int reduce_ahead = 4;

/// Combines V elements into `sum`; their indices are `index`, index + step, ..
template <class Reduction, class T, int V>
__device__ void fold_pack(Pack<typename Reduction::Total, V>& sum, const Pack<T, V>& next,
                          index_t index, index_t step) {
  for (int k = 0; k < V; ++k)
    sum.values[k] =
        Reduction::combine(sum.values[k], Reduction::lift(next.values[k], index + k * step));
}

/// The same for the elements of a run that exist.
template <class Reduction, class T, int V>
__device__ void fold_run(Pack<typename Reduction::Total, V>& sum, const Run<V>& run, const T* from,
                         index_t index, index_t step) {
  const Pack<T, V> next = run.load(from);
  for (int k = 0; k < V; ++k)
    if (k < run.count)
      sum.values[k] =
          Reduction::combine(sum.values[k], Reduction::lift(next.values[k], index + k * step));
}

/// Combines the sums of `lanes` threads that are `distance` apart; the first of these threads gets
/// the result. Called by all threads of the block.
template <class Reduction, int V>
__device__ void fold_lanes(Pack<typename Reduction::Total, V>& sum, std::uint32_t lane,
                           std::uint32_t lanes, std::uint32_t distance) {
  using Total = typename Reduction::Total;
  alignas(access_bytes) __shared__ unsigned char memory[V * block_threads * sizeof(Total)];
  Total* sums = reinterpret_cast<Total*>(memory) + threadIdx.x;
  if (lanes == 1) return;
  for (int k = 0; k < V; ++k) sums[k * block_threads] = sum.values[k];
  for (std::uint32_t width = lanes / 2; width > 0; width /= 2) {
    __syncthreads();
    if (lane >= width) continue;
    for (int k = 0; k < V; ++k) {
      sum.values[k] = Reduction::combine(sum.values[k], sums[k * block_threads + width * distance]);
      sums[k * block_threads] = sum.values[k];
    }
  }
}

template <class Reduction, int V>
__device__ Pack<typename Reduction::Total, V> identity_pack() {
  Pack<typename Reduction::Total, V> sum;
  for (int k = 0; k < V; ++k) sum.values[k] = Reduction::identity();
  return sum;
}

/// Reduces along contiguous memory: threads that share a result read adjacent packs.
///
/// @tparam Reduction  has `Total`, and `identity`, `lift` and `combine` to compute it
/// @tparam Result     stores a total: `put(place, sum)`
/// @param kept        array 0 is `in`, array 1 the result
/// @param reduced     a step is a run of V elements
template <int V, class Reduction, class T, class Result>
__global__ void reduce_along_kernel(const T* in, Loops<2> kept, Loops<1> reduced, ReduceGrid grid,
                                    Result result) {
  const std::uint32_t block = grid.by_splits.quotient(blockIdx.x);
  const std::uint32_t split = blockIdx.x - block * grid.splits;
  const std::uint32_t lane = threadIdx.x & (grid.lanes - 1);
  const std::uint32_t mine = block * (block_threads / grid.lanes) + threadIdx.x / grid.lanes;
  auto sum = identity_pack<Reduction, V>();
  index_t at = 0;
  if (mine < grid.results) {
    const auto place = kept.at(mine);
    const T* from = in + place.offset[0];
    at = place.offset[1];
    std::uint32_t step = grid.begin(split) + lane;
    const std::uint32_t end = grid.end(split);
    const std::uint32_t whole = end < grid.whole ? end : grid.whole;
    const auto index = [&](std::uint32_t s) { return grid.first_index + index_t(s) * V; };
    constexpr std::uint32_t ahead = reduce_ahead;
    for (; step + (ahead - 1) * grid.lanes < whole; step += ahead * grid.lanes) {
      Pack<T, V> next[ahead];
      for (std::uint32_t i = 0; i < ahead; ++i)
        next[i] = load_pack<V>(from + reduced.at(step + i * grid.lanes).offset[0]);
      for (std::uint32_t i = 0; i < ahead; ++i)
        fold_pack<Reduction>(sum, next[i], index(step + i * grid.lanes), 1);
    }
    for (; step < end; step += grid.lanes) {
      const auto next = reduced.at(step);
      const index_t left = grid.cols - index_t(next.inner) * V;
      fold_run<Reduction>(sum, Run<V>{grid.packed, reduced.strides[0][0] / V, left},
                          from + next.offset[0], index(step), 1);
    }
  }
  for (int k = 1; k < V; ++k) sum.values[0] = Reduction::combine(sum.values[0], sum.values[k]);
  Pack<typename Reduction::Total, 1> total{{sum.values[0]}};
  fold_lanes<Reduction>(total, lane, grid.lanes, 1);
  if (lane == 0 && mine < grid.results) grid.put(result, split, at, total.values[0]);
}

/// Reduces across contiguous memory: consecutive threads read adjacent packs of different results.
///
/// @param kept     array 0 is `in`, array 1 the result; a step is a run of V elements
/// @param reduced  the elements of a result
template <int V, class Reduction, class T, class Result>
__global__ void reduce_across_kernel(const T* in, Loops<2> kept, Loops<1> reduced, ReduceGrid grid,
                                     Result result) {
  const std::uint32_t block = grid.by_splits.quotient(blockIdx.x);
  const std::uint32_t split = blockIdx.x - block * grid.splits;
  const std::uint32_t columns = block_threads / grid.lanes;
  const std::uint32_t lane = threadIdx.x / columns;
  const std::uint32_t mine = block * columns + threadIdx.x % columns;
  auto sum = identity_pack<Reduction, V>();
  index_t at = 0, count = 0;
  if (mine < grid.results) {
    const auto place = kept.at(mine);
    const T* from = in + place.offset[0];
    at = place.offset[1];
    count = grid.cols - index_t(place.inner) * V;
    const Run<V> run{grid.packed, kept.strides[0][0] / V, count};
    std::uint32_t step = grid.begin(split) + lane;
    const std::uint32_t end = grid.end(split);
    const auto index = [&](std::uint32_t s) { return grid.first_index + index_t(s); };
    constexpr std::uint32_t ahead = reduce_ahead;
    if (grid.packed && run.full()) {
      for (; step + (ahead - 1) * grid.lanes < end; step += ahead * grid.lanes) {
        Pack<T, V> next[ahead];
        for (std::uint32_t i = 0; i < ahead; ++i)
          next[i] = load_pack<V>(from + reduced.at(step + i * grid.lanes).offset[0]);
        for (std::uint32_t i = 0; i < ahead; ++i)
          fold_pack<Reduction>(sum, next[i], index(step + i * grid.lanes), 0);
      }
    }
    for (; step < end; step += grid.lanes)
      fold_run<Reduction>(sum, run, from + reduced.at(step).offset[0], index(step), 0);
  }
  fold_lanes<Reduction>(sum, lane, grid.lanes, columns);
  if (lane != 0) return;
  for (int k = 0; k < V; ++k)
    if (k < count) grid.put(result, split, at + k * (kept.strides[1][0] / V), sum.values[k]);
}

}  // namespace cleave::inline v0::cuda::detail
