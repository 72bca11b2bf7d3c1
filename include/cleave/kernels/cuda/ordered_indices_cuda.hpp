// The indices of the first elements in sorted order along a dimension, on a GPU.
//
// A bitonic sorting network (K. Batcher: Sorting networks and their applications. AFIPS 32 (1968))
// whose merges begin with comparisons of mirrored places: all comparisons then have the same
// direction, and a line of any length is sorted like one of the next power of two, whose missing
// elements come last. Steps within a tile use shared memory, for several lines if these are short.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/element_order.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The number of places in a tile: two per thread of a block.
inline constexpr int order_tile = 2 * block_threads;

/// The lines to sort: each has 2^width places, of which the first n have elements.
template <class T>
struct OrderedLines {
  const T* elements;
  index_t* order;  ///< indices of elements in their line, n per line
  Loops<2> lines;  ///< array 0 is the elements, array 1 the order
  std::uint32_t count;
  index_t n;
  index_t step;  ///< stride between elements of a line
  int width;
  bool descending;

  __device__ index_t in_line(index_t place) const { return place & ((index_t{1} << width) - 1); }
  __device__ auto line_of(index_t place) const { return lines.at(std::uint32_t(place >> width)); }
  __device__ bool has_element(index_t place) const {
    return place >> width < count && in_line(place) < n;
  }
  __device__ kernels::ElementOrder<T> order_of(index_t place) const {
    return {elements + line_of(place).offset[0], step, descending};
  }
};

/// The two places that comparison number `pair` of a step compares, the lower one first.
struct PlacePair {
  index_t low, high;

  /// For the first step of a merge to runs of 2^log places.
  CLEAVE_HOST_DEVICE static PlacePair mirrored(index_t pair, int log) {
    const index_t half = index_t{1} << (log - 1);
    const index_t low = (pair >> (log - 1) << log) + (pair & (half - 1));
    return {low, low ^ (2 * half - 1)};
  }
  /// For the other steps, which compare places 2^log apart.
  CLEAVE_HOST_DEVICE static PlacePair apart(index_t pair, int log) {
    const index_t low = (pair >> log << (log + 1)) + (pair & ((index_t{1} << log) - 1));
    return {low, low + (index_t{1} << log)};
  }
};

/// One step in shared memory. @param begin  the first place of the tile
template <class T>
__device__ void compare_in_tile(const OrderedLines<T>& x, index_t begin, index_t* indices,
                                const PlacePair& pair) {
  __syncthreads();
  if (!x.has_element(begin + pair.high)) return;  // missing elements stay in place
  index_t &a = indices[pair.low], &b = indices[pair.high];
  if (!x.order_of(begin + pair.low)(b, a)) return;
  const index_t c = a;
  a = b;
  b = c;
}

/// Finishes merges within a tile: the steps that compare places 2^log apart and less.
template <class T>
__device__ void end_merges(const OrderedLines<T>& x, index_t begin, index_t* indices, int log) {
  for (; log >= 0; --log) compare_in_tile(x, begin, indices, PlacePair::apart(threadIdx.x, log));
}

inline constexpr int order_tile_log = 9;
static_assert(order_tile == 1 << order_tile_log);

/// First all steps for runs that fit into a tile, later the last steps of merges to longer runs.
template <class T>
__global__ void order_tiles_kernel(OrderedLines<T> x, bool is_first) {
  __shared__ index_t indices[order_tile];
  const index_t begin = index_t(blockIdx.x) * order_tile;
  for (int i = int(threadIdx.x); i < order_tile; i += block_threads) {
    if (!x.has_element(begin + i)) continue;
    const index_t at = x.in_line(begin + i);
    indices[i] = is_first ? at : x.order[x.line_of(begin + i).offset[1] + at];
  }
  if (is_first) {
    for (int run = 1; run <= x.width && run <= order_tile_log; ++run) {
      compare_in_tile(x, begin, indices, PlacePair::mirrored(threadIdx.x, run));
      end_merges(x, begin, indices, run - 2);
    }
  } else {
    end_merges(x, begin, indices, order_tile_log - 1);
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < order_tile; i += block_threads)
    if (x.has_element(begin + i))
      x.order[x.line_of(begin + i).offset[1] + x.in_line(begin + i)] = indices[i];
}

/// A step that compares places of different tiles.
template <class T>
__global__ void order_step_kernel(OrderedLines<T> x, index_t pairs, bool is_mirrored, int log) {
  const index_t number = index_t(blockIdx.x) * block_threads + index_t(threadIdx.x);
  if (number >= pairs) return;
  const PlacePair pair =
      is_mirrored ? PlacePair::mirrored(number, log) : PlacePair::apart(number, log);
  if (!x.has_element(pair.high)) return;
  index_t* const order = x.order + x.line_of(pair.low).offset[1];
  index_t &a = order[x.in_line(pair.low)], &b = order[x.in_line(pair.high)];
  if (!x.order_of(pair.low)(b, a)) return;
  const index_t c = a;
  a = b;
  b = c;
}

template <class T>
void order_lines(const OrderedLines<T>& x) {
  const index_t places = index_t(x.count) << x.width;
  const auto tiles = [&](bool is_first) {
    launch("topk", order_tiles_kernel<T>, dim3(unsigned((places + order_tile - 1) / order_tile)),
           dim3(block_threads), x, is_first);
  };
  const auto step = [&](bool is_mirrored, int log) {
    const index_t pairs = places / 2;
    launch_steps("topk", order_step_kernel<T>, pairs, 1, x, pairs, is_mirrored, log);
  };
  tiles(true);
  for (int run = order_tile_log + 1; run <= x.width; ++run) {
    step(true, run);
    for (int log = run - 2; log >= order_tile_log; --log) step(false, log);
    tiles(false);
  }
}

}  // namespace cuda::detail

namespace kernels {

/// Writes the indices of the largest or smallest elements of every line along `dim`, in order, as
/// many as `out` has; in the order of the current stream. The same indices as on the host.
///
/// @param out  has the extents of x, except along `dim`, where its extent is at most that of x
/// @cost       sorts whole lines: one launch for lines of up to 512 elements, about k^2 / 2 for
///             lines of 2^k · 512; memory for one index per element of x
/// @throws Error if a launch fails, or there is no memory
template <class T>
void ordered_indices(On<Cuda>, const Strided<const T>& x, int dim, bool descending,
                     const Strided<index_t>& out) {
  using namespace cuda::detail;
  if (out.extents.product() == 0) return;
  const index_t n = x.extents[dim];
  Shape lines = x.extents;
  lines[dim] = 1;
  Shape in_order = row_major_strides(lines);
  for (int d = 0; d < lines.dims; ++d) in_order[d] *= n;
  const auto memory = allocate_bytes(Cuda{}, std::size_t(x.extents.product()) * sizeof(index_t));
  auto* const order = static_cast<index_t*>(memory.get());
  int width = 0;
  while (index_t{1} << width < n) ++width;
  in_pieces(LoopNest<2>(lines, {&x.strides, &in_order}), [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece);
    order_lines(
        OrderedLines<T>{x.data, order, loops, loops.size(), n, x.strides[dim], width, descending});
  });
  in_order[dim] = 1;
  strided_copy(Cuda{}, ConstView{order, DType::int64, out.extents, in_order},
               View{out.data, DType::int64, out.extents, out.strides});
}

}  // namespace kernels

}  // namespace cleave::inline v0
