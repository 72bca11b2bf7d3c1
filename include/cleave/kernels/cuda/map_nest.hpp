// The elementwise pass behind maps, copies and fills on a GPU: out[i] = f(a[i], b[i], ..) for the
// steps of a loop nest.
//
// A thread processes a few packs of contiguous elements, or single elements if rows of an array are
// not contiguous or not aligned. All loads precede the stores, so that they overlap. Strides of 0
// repeat elements; scalars are passed as kernel parameters.
#pragma once

#include <cstdint>
#include <utility>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>

namespace cleave::inline v0::cuda::detail {

/// A scalar input.
template <class T>
struct Value {
  using Element = T;

  T value;

  template <int V>
  __device__ Pack<T, V> load(index_t, bool) const {
    Pack<T, V> pack;
    for (int k = 0; k < V; ++k) pack.values[k] = value;
    return pack;
  }
  __device__ T element(index_t) const { return value; }
};

/// An input in device memory.
template <class T>
struct Elements {
  using Element = T;

  const T* data;

  /// The pack of V elements at `offset`; the element there V times if it repeats.
  template <int V>
  __device__ Pack<T, V> load(index_t offset, bool repeats) const {
    if (repeats) return Value<T>{data[offset]}.template load<V>(0, true);
    return load_pack<V>(data + offset);
  }
  __device__ T element(index_t offset) const { return data[offset]; }
};

template <int V, class R, class F, class... Packs>
__device__ Pack<R, V> apply_to_packs(const F& f, const Packs&... in) {
  Pack<R, V> out;
  for (int k = 0; k < V; ++k) out.values[k] = R(f(in.values[k]...));
  return out;
}

/// One step of a thread: a pack of the map, or an element.
template <bool Packed, class R, class F, class... In>
struct MapStep {
  static constexpr int width = Packed ? pack_width<R, typename In::Element...>() : 1;
  static constexpr int arrays = 1 + int(sizeof...(In));
  using Input = std::make_integer_sequence<int, int(sizeof...(In))>;

  const Loops<arrays>& loops;
  R* out;

  template <int... K>
  __device__ Pack<R, width> load(const Place<arrays>& at, std::integer_sequence<int, K...>,
                                 const F& f, const In&... in) const {
    if constexpr (Packed)
      return apply_to_packs<width, R>(
          f, in.template load<width>(at.offset[K + 1], loops.strides[K + 1][0] == 0)...);
    else return {{R(f(in.element(at.offset[K + 1])...))}};
  }
  __device__ void store(index_t offset, const Pack<R, width>& results) const {
    if constexpr (Packed) store_pack(out + offset, results);
    else out[offset] = results.values[0];
  }

  /// Computes the first `count` elements of a pack.
  template <int... K>
  __device__ void part(const Place<arrays>& at, index_t count, std::integer_sequence<int, K...>,
                       const F& f, const In&... in) const {
    for (index_t k = 0; k < count; ++k)
      out[at.offset[0] + k] =
          R(f(in.element(at.offset[K + 1] + (loops.strides[K + 1][0] == 0 ? 0 : k))...));
  }
};

/// @param loops  array 0 is `out`; a step of the innermost loop is a pack, or an element
/// @param steps  number of steps of all loops
/// @param whole  the first `whole` steps are known to be full
/// @param cols   elements of the innermost loop
template <bool Packed, class F, class R, class... In>
__global__ void map_kernel(F f, Loops<1 + int(sizeof...(In))> loops, std::uint32_t steps,
                           std::uint32_t whole, index_t cols, R* out, In... in) {
  using Step = MapStep<Packed, R, F, In...>;
  constexpr int width = Step::width, packs = packs_per_thread<width, R, typename In::Element...>();
  const Step step{loops, out};
  const std::uint32_t first = blockIdx.x * (blockDim.x * packs) + threadIdx.x;
  if (first + (packs - 1) * blockDim.x < whole) {
    Pack<R, width> results[packs];
    index_t offsets[packs];
    for (int p = 0; p < packs; ++p) {
      const auto at = loops.at(first + std::uint32_t(p) * blockDim.x);
      offsets[p] = at.offset[0];
      results[p] = step.load(at, typename Step::Input{}, f, in...);
    }
    for (int p = 0; p < packs; ++p) step.store(offsets[p], results[p]);
    return;
  }
  for (int p = 0; p < packs; ++p) {
    const std::uint32_t mine = first + std::uint32_t(p) * blockDim.x;
    if (mine >= steps) return;
    const auto at = loops.at(mine);
    const index_t left = cols - index_t(at.inner) * width;
    if (left >= width) step.store(at.offset[0], step.load(at, typename Step::Input{}, f, in...));
    else step.part(at, left, typename Step::Input{}, f, in...);
  }
}

template <bool Packed, class F, class R, class... In>
void launch_map(const char* operation, const F& f, const LoopNest<1 + int(sizeof...(In))>& nest,
                R* out, const In&... in) {
  constexpr int width = MapStep<Packed, R, F, In...>::width;
  constexpr int packs = packs_per_thread<width, R, typename In::Element...>();
  in_pieces(nest, [&](const auto& piece) {
    const Loops<1 + int(sizeof...(In))> loops(piece, width);
    const index_t cols = piece.extents[piece.inner()];
    const std::uint32_t steps = loops.size();
    const std::uint32_t whole = cols % width == 0 ? steps
                                : piece.dims == 1 ? std::uint32_t(cols / width)
                                                  : 0;
    launch_steps(operation, map_kernel<Packed, F, R, In...>, steps, packs, f, loops, steps, whole,
                 cols, out, in...);
  });
}

/// Whether array k of a nest can be accessed in packs of V elements.
template <int V, int N, class T>
bool packs_serve(const LoopNest<N>& nest, int k, const Elements<T>& in) {
  return nest.strides[k][nest.inner()] == 0 ||
         (nest.rows_are_packs(k, V) && aligned_for<V>(in.data));
}
template <int V, int N, class T>
bool packs_serve(const LoopNest<N>&, int, const Value<T>&) {
  return true;
}

/// Whether all arrays can be accessed in packs of V elements, and rows fill most packs.
template <int V, int N, class R, int... K, class... In>
bool packs_serve_all(const LoopNest<N>& nest, R* out, std::integer_sequence<int, K...>,
                     const In&... in) {
  const index_t cols = nest.extents[nest.inner()];
  return nest.strides[0][nest.inner()] == 1 && (cols % V == 0 || cols >= 8 * V) &&
         packs_serve<V>(nest, 0, Elements<R>{out}) && (packs_serve<V>(nest, K + 1, in) && ...);
}

/// The map of a nest whose array 0 is `out`, with vectorised accesses if all arrays allow them.
template <class F, class R, class... In>
void map_nest(const char* operation, const F& f, const LoopNest<1 + int(sizeof...(In))>& nest,
              R* out, const In&... in) {
  constexpr int width = pack_width<R, typename In::Element...>();
  if (packs_serve_all<width>(nest, out, std::make_integer_sequence<int, int(sizeof...(In))>{},
                             in...))
    launch_map<true>(operation, f, nest, out, in...);
  else launch_map<false>(operation, f, nest, out, in...);
}

}  // namespace cleave::inline v0::cuda::detail
