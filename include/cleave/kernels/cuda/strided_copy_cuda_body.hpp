// The kernels of strided copies and fills in device memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/copy_tiles.hpp>
#include <cleave/kernels/cuda/map_nest.hpp>
#include <cleave/kernels/cuda/shifted_words.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The size of the widest word that a copy can move per access. @param nest  counts bytes
inline int widest_word(const LoopNest<2>& nest, const void* to, const void* from) {
  auto common = std::uint64_t(access_bytes);
  common |= reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  common |= std::uint64_t(nest.extents[nest.inner()]);
  for (int d = 0; d < nest.inner(); ++d)
    common |= std::uint64_t(nest.strides[0][d]) | std::uint64_t(nest.strides[1][d]);
  return int(common & (~common + 1));  // the lowest bit
}

/// The loop with the smallest stride in the source, if it is not the innermost one; else -1.
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

/// Transposes planes of loop `along`, innermost in the source, and the innermost loop.
template <int N>
void copy_tiles(LoopNest<2> nest, int along, const word_t<N>* from, word_t<N>* to) {
  const int inner = nest.inner();
  const TilePlane plane{nest.extents[along],    nest.extents[inner],    nest.strides[1][along],
                        nest.strides[1][inner], nest.strides[0][along], nest.strides[0][inner]};
  nest.remove(inner);
  nest.remove(along);
  if constexpr (N < 4) {
    if (plane.from_i == 1 && plane.to_j == 1) return launch_tiles<N, 4 / N>(plane, nest, from, to);
  }
  launch_tiles<N, 1>(plane, nest, from, to);
}

/// Whether to copy rows in shifted words: they are long, and wider accesses are not possible.
/// @param nest  counts bytes
inline bool are_shifted_rows(const LoopNest<2>& nest, int word, void* to, const void* from) {
  using Byte = std::uint8_t;
  return word < 4 && nest.extents[nest.inner()] >= least_shifted_row &&
         !packs_serve_all<pack_width<Byte>()>(nest, static_cast<Byte*>(to),
                                              std::make_integer_sequence<int, 1>{},
                                              Elements<Byte>{static_cast<const Byte*>(from)});
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
    if (side < other) nest.move_inside(along);  // threads share cache lines of both
  }
  map_nest("strided_copy", kernels::Same{}, nest, to, Elements<word_t<N>>{from});
}

/// A constant as a function without arguments.
template <class T>
struct Constant {
  T value;
  CLEAVE_HOST_DEVICE T operator()() const { return value; }
};

template <class Bytes>
void fill_bytes(const View& view, const Bytes& bytes) {
  if (view.size() == 0) return;
  map_nest("strided_fill", Constant<Bytes>{bytes}, LoopNest<1>(view.extents, {&view.strides}),
           static_cast<Bytes*>(view.data));
}

}  // namespace cuda::detail

template <std::same_as<Cuda> Device>
void strided_copy(Device, const ConstView& source, const View& destination) {
  using namespace cuda::detail;
  if (source.extents.product() == 0) return;
  LoopNest<2> nest(source.extents, {&destination.strides, &source.strides});
  nest.split_elements(index_t(size_of(source.dtype)));
  if (nest.dims == 1)
    return cuda::check(cudaMemcpyAsync(destination.data, source.data, std::size_t(nest.extents[0]),
                                       cudaMemcpyDefault, cuda::current_stream().get()),
                       "strided_copy");
  const int word = widest_word(nest, destination.data, source.data);
  if (are_shifted_rows(nest, word, destination.data, source.data))
    return copy_shifted_rows(nest, static_cast<std::uint8_t*>(destination.data),
                             static_cast<const std::uint8_t*>(source.data));
  nest.join_elements(word);
  cleave::detail::visit_word(std::size_t(word), [&]<std::size_t N>() {
    copy_words<int(N)>(nest, source.data, destination.data);
  });
}

}  // namespace cleave::inline v0
