// One pass over contiguous arrays of equal length on a GPU, some of which are updated: a step of an
// optimizer. Each array is read and written once, by one access per thread.
#pragma once

#include <array>
#include <type_traits>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/reduce_nests.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

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

/// @param packed  whether all arrays are aligned for packs of V elements
template <int V, class Step, class... T>
__global__ void update_kernel(Step step, index_t n, bool packed, T*... arrays) {
  const index_t begin = (index_t(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (begin >= n) return;
  const Run<V> run{packed, 1, n - begin};
  update_run(step, run, HeldRun<V, T>(run, arrays + begin)...);
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
  if (n == 0) return;
  constexpr int width = cuda::detail::pack_width<std::remove_const_t<T>...>();
  const bool packed = (cuda::detail::aligned_for<width>(arrays) && ...);
  cuda::launch_steps(operation, cuda::detail::update_kernel<width, Step, T...>,
                     (n + width - 1) / width, 1, step, n, packed, arrays...);
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
