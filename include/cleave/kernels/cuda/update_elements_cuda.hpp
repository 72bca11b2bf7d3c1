// One pass over contiguous arrays of equal length on a GPU, some of which are updated: a step of an
// optimizer. Each array is read and written once, by one access per thread. A launch updates many
// such groups of arrays, whose addresses are arguments of the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/reduce_nests.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Groups of arrays of equal length, one of each type per group: an argument of a kernel in which
/// consecutive blocks update a group.
template <int Most, class... T>
struct UpdateTable {
  /// Elements of an array per thread.
  static constexpr int width = pack_width<std::remove_const_t<T>...>();

  std::int32_t groups = 0;
  std::uint32_t blocks = 0;   ///< of all groups
  std::uint32_t first[Most];  ///< block of a group
  index_t sizes[Most];        ///< elements of each array of a group
  void* arrays[sizeof...(T)][Most];

  /// @pre groups < Most
  void add(index_t n, T*... group) {
    if (n == 0) return;
    first[groups] = blocks;
    sizes[groups] = n;
    int k = 0;
    ((arrays[k++][groups] = const_cast<std::remove_const_t<T>*>(group)), ...);
    constexpr index_t per_block = index_t(block_threads) * width;
    blocks += std::uint32_t((n + per_block - 1) / per_block);
    ++groups;
  }

  __device__ int group_of(std::uint32_t block) const {
    if constexpr (Most == 1) return 0;  // a constant: nvcc keeps a table that is indexed in memory
    int low = 0;
    for (int high = groups; high - low > 1;) {
      const int middle = (low + high) / 2;
      (block < first[middle] ? high : low) = middle;
    }
    return low;
  }
};

/// The number of groups of N arrays that fit, with a step, in the 4096 bytes that arguments of a
/// kernel may have on every GPU.
template <class Step, std::size_t N>
inline constexpr int groups_per_launch =
    int((4096 - 24 - sizeof(Step)) / (sizeof(std::uint32_t) + sizeof(index_t) + N * sizeof(void*)));

/// The elements of an array that a thread holds.
template <int V, class T>
struct HeldRun {
  using Element = std::remove_const_t<T>;

  T* at;
  Pack<Element, V> pack;

  __device__ HeldRun(const Run<V>& run, T* elements) : at(elements), pack(run.load(elements)) {}
  __device__ void store(const Run<V>& run) const {
    if constexpr (!std::is_const_v<T>) run.store(at, pack);
  }
};

template <int V, class Step, class... Held>
__device__ void update_run(const Step& step, const Run<V>& run, Held... held) {
  for (int k = 0; k < V; ++k)
    if (k < run.count) step(held.pack.values[k]...);
  (held.store(run), ...);
}

template <int V, class Step, class... T>
__device__ void update_arrays(const Step& step, index_t left, T*... arrays) {
  const bool packed = (aligned_for<V>(arrays) && ...);
  const Run<V> run{packed, 1, left};
  update_run(step, run, HeldRun<V, T>(run, arrays)...);
}

template <class Step, int Most, class... T>
__global__ void update_kernel(Step step, UpdateTable<Most, T...> table) {
  constexpr int width = UpdateTable<Most, T...>::width;
  const int group = table.group_of(blockIdx.x);
  const index_t thread = index_t(blockIdx.x - table.first[group]) * blockDim.x + threadIdx.x;
  const index_t begin = thread * width, left = table.sizes[group] - begin;
  if (left <= 0) return;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    update_arrays<width>(step, left, static_cast<T*>(table.arrays[I][group]) + begin...);
  }(std::index_sequence_for<T...>{});
}

template <class Step, int Most, class... T>
void launch_updates(const char* operation, const Step& step, const UpdateTable<Most, T...>& table) {
  static_assert(sizeof(Step) + sizeof(table) <= 4096);
  if (table.groups > 0)
    launch(operation, update_kernel<Step, Most, T...>, dim3(table.blocks), dim3(block_threads),
           step, table);
}

/// Sums f of the elements.
template <class F>
struct SumOf {
  /// Of a type of its own: of several totals, which have been lifted, another pass makes one.
  struct Total {
    double value;
  };

  CLEAVE_HOST_DEVICE static Total identity() { return {0}; }
  template <class T>
  CLEAVE_HOST_DEVICE static Total lift(const T& element, index_t) {
    return {F{}(element)};
  }
  CLEAVE_HOST_DEVICE static Total lift(const Total& total, index_t) { return total; }
  CLEAVE_HOST_DEVICE static Total combine(const Total& a, const Total& b) {
    return {a.value + b.value};
  }
};

/// Adds totals to results.
struct AddedResult {
  double* out;

  template <class Total>
  __device__ void put(index_t at, const Total& total) const {
    out[at] += total.value;
  }
};

}  // namespace cuda::detail

namespace kernels {

/// Calls step(a[i], b[i], ..) for all i, in the order of the current stream.
///
/// @param operation  for errors
/// @param step       a functor for device code; changes the elements of the arrays that are not
///                   const
/// @param arrays     of n elements each in device memory; arrays that are changed overlap no other
/// @throws Error if the launch fails
template <class Step, class... T>
void update_elements(On<Cuda>, const char* operation, const Step& step, index_t n, T*... arrays) {
  cuda::detail::UpdateTable<1, T...> table;
  table.add(n, arrays...);
  cuda::detail::launch_updates(operation, step, table);
}

/// The same for many groups of arrays.
///
/// @param groups  the number of elements of a group's arrays, and the arrays
/// @cost          a launch per 4 KB of sizes and addresses
template <class Step, class... T>
void update_groups(On<Cuda>, const char* operation, const Step& step,
                   const std::vector<std::tuple<index_t, T*...>>& groups) {
  constexpr int most = cuda::detail::groups_per_launch<Step, sizeof...(T)>;
  cuda::detail::UpdateTable<most, T...> table;
  for (const auto& group : groups) {
    std::apply([&](index_t n, T*... arrays) { table.add(n, arrays...); }, group);
    if (table.groups < most) continue;
    cuda::detail::launch_updates(operation, step, table);
    table.groups = 0, table.blocks = 0;
  }
  cuda::detail::launch_updates(operation, step, table);
}

/// *sum += f(element), over n contiguous elements, in the order of the current stream. The order
/// of additions depends on n and the device alone.
///
/// @tparam F  a functor without state for device code: an element -> double
/// @throws Error if a launch fails, or there is no memory for partial results
template <class F, class T>
void add_elements(On<Cuda>, const char* operation, const F&, index_t n, const T* elements,
                  double* sum) {
  if (n == 0) return;
  const Shape extents(std::array<index_t, 1>{n}), strides(std::array<index_t, 1>{1});
  const cuda::detail::ReduceShapes shapes(extents, strides, 1u);
  cuda::detail::reduce_nests<cuda::detail::SumOf<F>>(operation, elements, shapes.kept_loops(),
                                                     shapes.reduced_loops(),
                                                     cuda::detail::AddedResult{sum});
}

}  // namespace kernels

}  // namespace cleave::inline v0
