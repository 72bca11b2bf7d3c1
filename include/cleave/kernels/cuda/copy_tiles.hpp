// Transposition on a GPU: words that are contiguous along one loop in the source and along another
// loop in the destination.
//
// The plane of these two loops is divided into tiles. A block reads a tile line by line into shared
// memory and writes it column by column, so that global memory accesses are coalesced in both
// directions. Lines are rotated in shared memory to avoid bank conflicts in both directions.
// Elements of one or two bytes move four bytes at a time, whatever the alignment of their lines.
#pragma once

#include <cstdint>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/shifted_words.hpp>

namespace cleave::inline v0::cuda::detail {

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

/// How a block moves a tile of words of N bytes, V of them per access: one, or as many as four
/// bytes hold.
template <int N, int V>
struct Tile {
  static constexpr int edge = N * V == 4 ? (N == 1 ? 128 : 64) : N < 8 ? 64 : 32;
  static constexpr int across = edge / V;               ///< threads along a line
  static constexpr int lines = block_threads / across;  ///< lines that a block moves per pass
  static constexpr int passes = edge / lines;           ///< passes to move all lines
  static constexpr int rotation = N < 4 ? 4 / N : 1;    ///< of V lines relative to the next V

  /// The position of word i of line j.
  CLEAVE_HOST_DEVICE static int at(int i, int j) {
    return j * edge + (i + j / V * rotation) % edge;
  }
};

/// @pre  if V > 1, source and destination are contiguous along their lines
template <int N, int V>
__global__ void tile_kernel(TilePlane plane, Loops<2> planes, const word_t<N>* from,
                            word_t<N>* to) {
  using T = Tile<N, V>;
  static_assert(V == 1 || N * V == 4);
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

  // all loads are issued before the first result is used
  if constexpr (V == 1) {
    word_t<N> read[T::passes] = {};
    for (int p = 0; p < T::passes; ++p) {
      const int j = line + p * T::lines;
      if (along < rest_i && j < rest_j) read[p] = from[along * plane.from_i + j * plane.from_j];
    }
    for (int p = 0; p < T::passes; ++p) tile[T::at(along, line + p * T::lines)] = read[p];
  } else {
    const auto source = [&](int j) {
      return reinterpret_cast<const std::uint8_t*>(from + along + j * plane.from_j);
    };
    std::uint64_t read[T::passes] = {};
    for (int p = 0; p < T::passes; ++p) {
      const int j = line + p * T::lines;
      if (along < rest_i && j < rest_j)
        read[p] = load_around(source(j), (i0 + along) * N, (rest_i - along) * N);
    }
    for (int p = 0; p < T::passes; ++p) {
      const int j = line + p * T::lines;
      *reinterpret_cast<std::uint32_t*>(tile + T::at(along, j)) = shifted(read[p], source(j));
    }
  }
  __syncthreads();
  for (int p = 0; p < T::passes; ++p) {
    const int i = line + p * T::lines;
    if (i >= rest_i) break;
    word_t<N>* const target = to + i * plane.to_i;
    if constexpr (V == 1) {
      if (along < rest_j) target[along * plane.to_j] = tile[T::at(i, along)];
    } else {  // aligned words, the first and last of which may be partly outside the line
      const int count = rest_j < T::edge ? int(rest_j) : T::edge;
      const int begin = along - skew_of(target) / N;
      const int end = along + V == T::edge ? T::edge : begin + V;
      for (int j = begin; j < end; j += V) {
        if (j >= 0 && j + V <= count) {
          Pack<word_t<N>, V> words;
          for (int k = 0; k < V; ++k) words.values[k] = tile[T::at(i, j + k)];
          store_pack(target + j, words);
        } else {
          for (int k = 0; k < V; ++k)
            if (j + k >= 0 && j + k < count) target[j + k] = tile[T::at(i, j + k)];
        }
      }
    }
  }
}

}  // namespace cleave::inline v0::cuda::detail
