// C = A · B or C += A · B on a GPU for integers, which cuBLASLt does not support: any strides, sums
// that wrap.
//
// A block computes a tile of C. It loads tiles of A and B into shared memory; each thread
// accumulates a square register tile.
#pragma once

#include <cstdint>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/matrix.hpp>

namespace cleave::inline v0::cuda::detail {

/// Extents of a tile: `edge` x `edge` sums, `square` x `square` per thread.
struct GemmTile {
  static constexpr int edge = 64, depth = 16, square = 4;
  static constexpr int threads_across = edge / square;
  static_assert(threads_across * threads_across == block_threads);
};

/// @param tiles   tiles of C along its rows
/// @param batches blocks in y iterate over them in a grid-stride loop
template <class T>
__global__ void tiled_gemm_kernel(kernels::Matrix<const T> a, kernels::Matrix<const T> b,
                                  kernels::Matrix<T> c, kernels::Batches batches,
                                  FastDivision by_tiles, std::uint32_t tiles, bool add) {
  using Tile = GemmTile;
  __shared__ T left[Tile::depth][Tile::edge + 1], right[Tile::depth][Tile::edge + 1];
  const std::uint32_t tile_row = by_tiles.quotient(blockIdx.x);
  const index_t i0 = index_t(tile_row) * Tile::edge;
  const index_t j0 = index_t(blockIdx.x - tile_row * tiles) * Tile::edge;
  const int thread = int(threadIdx.x);
  const int row = thread / Tile::threads_across, col = thread % Tile::threads_across;

  for (index_t batch = blockIdx.y; batch < batches.count; batch += gridDim.y) {
    const T* from_a = a.data + batch * batches.a_stride;
    const T* from_b = b.data + batch * batches.b_stride;
    T sums[Tile::square][Tile::square] = {};
    for (index_t k0 = 0; k0 < a.cols; k0 += Tile::depth) {
      for (int at = thread; at < Tile::edge * Tile::depth; at += block_threads) {
        const int line = at / Tile::depth, k = at % Tile::depth;
        const index_t i = i0 + line, p = k0 + k;
        left[k][line] =
            i < a.rows && p < a.cols ? from_a[i * a.row_stride + p * a.col_stride] : T(0);
      }
      for (int at = thread; at < Tile::edge * Tile::depth; at += block_threads) {
        const int k = at / Tile::edge, line = at % Tile::edge;
        const index_t j = j0 + line, p = k0 + k;
        right[k][line] =
            j < b.cols && p < a.cols ? from_b[p * b.row_stride + j * b.col_stride] : T(0);
      }
      __syncthreads();
      for (int k = 0; k < Tile::depth; ++k)
        for (int i = 0; i < Tile::square; ++i)
          for (int j = 0; j < Tile::square; ++j)
            sums[i][j] =
                kernels::plus(sums[i][j], kernels::times(left[k][row + i * Tile::threads_across],
                                                         right[k][col + j * Tile::threads_across]));
      __syncthreads();
    }
    T* to = c.data + batch * batches.c_stride;
    for (int i = 0; i < Tile::square; ++i)
      for (int j = 0; j < Tile::square; ++j) {
        const index_t ci = i0 + row + i * Tile::threads_across;
        const index_t cj = j0 + col + j * Tile::threads_across;
        if (ci >= c.rows || cj >= c.cols) continue;
        T& target = to[ci * c.row_stride + cj * c.col_stride];
        target = add ? kernels::plus(target, sums[i][j]) : sums[i][j];
      }
  }
}

/// @pre no extent of c is 0, fewer than 2^31 tiles
template <class T>
void tiled_gemm(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                const kernels::Matrix<T>& c, const kernels::Batches& batches, bool add) {
  constexpr index_t max_in_y = 65535;
  const auto tiles = [](index_t n) {
    return std::uint32_t((n + GemmTile::edge - 1) / GemmTile::edge);
  };
  launch("matmul", tiled_gemm_kernel<T>,
         dim3(tiles(c.rows) * tiles(c.cols),
              unsigned(batches.count < max_in_y ? batches.count : max_in_y)),
         dim3(block_threads), a, b, c, batches, FastDivision(tiles(c.cols)), tiles(c.cols), add);
}

}  // namespace cleave::inline v0::cuda::detail
