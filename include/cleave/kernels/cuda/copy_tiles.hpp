// Transposition on a GPU: words that follow each other along one loop in the source and along
// another one in the destination.
//
// The plane of these two loops is cut into tiles. A block reads a tile line by line, keeps it in
// shared memory and writes it column by column, so that global memory sees lines in both
// directions. Lines are rotated in shared memory: neither direction meets a bank twice.
#pragma once

#include <cstdint>

#include <cleave/kernels/cuda/launch.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>

namespace cleave::cuda::detail {

/// Word (i, j) moves from i * from_i + j * from_j to i * to_i + j * to_j. The source is read along
/// i, the destination written along j.
struct TilePlane {
  index_t extent_i, extent_j;
  index_t from_i, from_j;
  index_t to_i, to_j;
  std::uint32_t tiles_i = 0, tiles_j = 0;
  FastDivision by_tiles_i{}, by_tiles_j{};

  void cut(index_t edge) {
    tiles_i = std::uint32_t((extent_i + edge - 1) / edge);
    tiles_j = std::uint32_t((extent_j + edge - 1) / edge);
    by_tiles_i = FastDivision(tiles_i);
    by_tiles_j = FastDivision(tiles_j);
  }
};

/// How a block moves a tile of words of N bytes, V of them per access.
template <int N, int V>
struct Tile {
  static constexpr int edge = N * V == 4 ? (N == 1 ? 128 : 64) : N < 8 ? 64 : 32;
  static constexpr int across = edge / V;               ///< threads along a line
  static constexpr int lines = block_threads / across;  ///< lines that a block moves at once
  static constexpr int passes = edge / lines;           ///< until all lines are moved
  static constexpr int rotation = N < 4 ? 4 / N : 1;    ///< of V lines against the next V

  /// Where word i of line j is.
  CLEAVE_HOST_DEVICE static int at(int i, int j) {
    return j * edge + (i + j / V * rotation) % edge;
  }
};

/// @param plane  its extents are multiples of V; where V > 1, source and destination are aligned
///               and dense along their lines
template <int N, int V>
__global__ void tile_kernel(TilePlane plane, Loops<2> planes, const word_t<N>* from,
                            word_t<N>* to) {
  using T = Tile<N, V>;
  using Wide = word_t<N * V>;
  alignas(access_bytes) __shared__ word_t<N> tile[T::edge * T::edge];

  const std::uint32_t row = plane.by_tiles_i.quotient(blockIdx.x);
  const std::uint32_t which = plane.by_tiles_j.quotient(row);
  const index_t i0 = index_t(blockIdx.x - row * plane.tiles_i) * T::edge;
  const index_t j0 = index_t(row - which * plane.tiles_j) * T::edge;
  const auto at = planes.at(which);
  to += at.offset[0] + i0 * plane.to_i + j0 * plane.to_j;
  from += at.offset[1] + i0 * plane.from_i + j0 * plane.from_j;
  const index_t rest_i = plane.extent_i - i0, rest_j = plane.extent_j - j0;
  const int along = int(threadIdx.x) % T::across * V, line = int(threadIdx.x) / T::across;

  Wide read[T::passes] = {};  // all loads are under way before the first is waited for
  for (int p = 0; p < T::passes; ++p) {
    const int j = line + p * T::lines;
    if (along < rest_i && j < rest_j)
      read[p] = *reinterpret_cast<const Wide*>(from + along * plane.from_i + j * plane.from_j);
  }
  for (int p = 0; p < T::passes; ++p)
    *reinterpret_cast<Wide*>(tile + T::at(along, line + p * T::lines)) = read[p];
  __syncthreads();
  for (int p = 0; p < T::passes; ++p) {
    const int i = line + p * T::lines;
    if (i >= rest_i || along >= rest_j) continue;
    Pack<word_t<N>, V> words;
    for (int k = 0; k < V; ++k) words.values[k] = tile[T::at(i, along + k)];
    store_pack(to + i * plane.to_i + along * plane.to_j, words);
  }
}

}  // namespace cleave::cuda::detail
