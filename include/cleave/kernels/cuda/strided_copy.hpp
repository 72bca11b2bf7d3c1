// Copies between strided views in device memory, and fills: packing, unpacking and transposition.
//
// An element is bytes: the loops of a copy are ordered by the destination's strides and merged
// down to its bytes, so that what moves at once is the widest word that both views allow, whatever
// the elements are. What is one run of bytes in both is left to the runtime, which copies from and
// to the host's memory, too; planes that are transposed go through shared memory in tiles; the
// rest is the pass of a map.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <cleave/core/cuda/error.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/arithmetic.hpp>
#include <cleave/kernels/cuda/copy_tiles.hpp>
#include <cleave/kernels/cuda/map_nest.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave {

namespace cuda::detail {

/// Planes with a shorter side are no matter for tiles.
inline constexpr index_t least_tile_side = 16;

/// The widest word that a copy can move at once. @param nest  counts bytes
inline int widest_word(const LoopNest<2>& nest, const void* to, const void* from) {
  auto common = std::uint64_t(access_bytes);
  common |= reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  common |= std::uint64_t(nest.extents[nest.inner()]);
  for (int d = 0; d < nest.inner(); ++d)
    common |= std::uint64_t(nest.strides[0][d]) | std::uint64_t(nest.strides[1][d]);
  return int(common & (~common + 1));  // the lowest bit
}

/// The loop that the source runs along, if it is another one than the innermost; else -1.
inline int loop_of_source(const LoopNest<2>& nest) {
  int along = nest.inner();
  for (int d = nest.inner() - 1; d >= 0; --d)
    if (nest.extents[d] > 1 && magnitude(nest.strides[1][d]) < magnitude(nest.strides[1][along]))
      along = d;
  return nest.strides[1][along] == 0 || along == nest.inner() ? -1 : along;
}

template <int N, int V>
void launch_tiles(TilePlane plane, const LoopNest<2>& planes, const word_t<N>* from,
                  word_t<N>* to) {
  plane.cut(Tile<N, V>::edge);
  in_pieces(planes, [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece);
    launch("strided_copy", tile_kernel<N, V>, dim3(loops.size() * plane.tiles_i * plane.tiles_j),
           dim3(block_threads), plane, loops, from, to);
  });
}

/// Transposes planes of loop `along` of the source and the innermost of the destination.
template <int N>
void copy_tiles(LoopNest<2> nest, int along, const word_t<N>* from, word_t<N>* to) {
  const int inner = nest.inner();
  const TilePlane plane{nest.extents[along],    nest.extents[inner],    nest.strides[1][along],
                        nest.strides[1][inner], nest.strides[0][along], nest.strides[0][inner]};
  nest.remove(inner);
  nest.remove(along);
  if constexpr (N < 4) {
    constexpr int pack = 4 / N;
    auto steps = std::uint64_t(plane.extent_i) | std::uint64_t(plane.extent_j) |
                 std::uint64_t(plane.from_j) | std::uint64_t(plane.to_i);
    for (int d = 0; d < nest.dims; ++d)
      steps |= std::uint64_t(nest.strides[0][d]) | std::uint64_t(nest.strides[1][d]);
    if (plane.from_i == 1 && plane.to_j == 1 && steps % pack == 0 && aligned_for<pack>(from) &&
        aligned_for<pack>(to))
      return launch_tiles<N, pack>(plane, nest, from, to);
  }
  launch_tiles<N, 1>(plane, nest, from, to);
}

/// @param nest  counts words
template <int N>
void copy_words(LoopNest<2> nest, const void* source, void* destination) {
  const auto* from = static_cast<const word_t<N>*>(source);
  auto* to = static_cast<word_t<N>*>(destination);
  const int along = loop_of_source(nest);
  if (along >= 0) {
    const index_t side = nest.extents[along], other = nest.extents[nest.inner()];
    if (side >= least_tile_side && other >= least_tile_side)
      return copy_tiles<N>(nest, along, from, to);
    if (side < other) nest.move_inside(along);  // threads share lines of both
  }
  map_nest("strided_copy", kernels::Same{}, nest, to, Elements<word_t<N>>{from});
}

/// A function without arguments.
template <class T>
struct Constant {
  T value;
  CLEAVE_HOST_DEVICE T operator()() const { return value; }
};

/// The bytes of a T, aligned as it is: elements of equal size and alignment share kernels.
template <class T>
struct BytesOf {
  using Part = word_t<int(alignof(T))>;
  static constexpr std::size_t parts = sizeof(T) / sizeof(Part);
  using type = std::conditional_t<parts == 1, Part, std::array<Part, parts>>;
};

}  // namespace cuda::detail

/// Copies all elements of `source` to `destination`, index by index, in the order of the current
/// stream; no other byte is read or written.
///
/// @pre the views have the same extents and element type and do not overlap; both are memory of
///      the current device, or all elements are one run of bytes in both
/// @cost one launch; bytes move once
/// @throws Error if the copy cannot be enqueued
inline void strided_copy(Cuda, const ConstView& source, const View& destination) {
  using namespace cuda::detail;
  if (source.extents.product() == 0) return;
  LoopNest<2> nest(source.extents, {&destination.strides, &source.strides});
  nest.split_elements(index_t(size_of(source.dtype)));
  if (nest.dims == 1)
    return cuda::check(cudaMemcpyAsync(destination.data, source.data, std::size_t(nest.extents[0]),
                                       cudaMemcpyDefault, cuda::current_stream().get()),
                       "strided_copy");
  const int word = widest_word(nest, destination.data, source.data);
  nest.join_elements(word);
  switch (word) {
    case 1: return copy_words<1>(nest, source.data, destination.data);
    case 2: return copy_words<2>(nest, source.data, destination.data);
    case 4: return copy_words<4>(nest, source.data, destination.data);
    case 8: return copy_words<8>(nest, source.data, destination.data);
    default: return copy_words<16>(nest, source.data, destination.data);
  }
}

/// Sets every element of a view to `value`, likewise. @pre T is the view's element type
template <class T>
void strided_fill(Cuda, const View& view, const T& value) {
  using namespace cuda::detail;
  if (view.size() == 0) return;
  using Bytes = typename BytesOf<T>::type;
  const Constant<Bytes> constant{__builtin_bit_cast(Bytes, value)};
  map_nest("strided_fill", constant, LoopNest<1>(view.extents, {&view.strides}),
           static_cast<Bytes*>(view.data));
}

}  // namespace cleave
