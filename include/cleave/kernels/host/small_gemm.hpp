// C = A · B where B fits the caches of a core: products in attention heads, and in the layers of
// small networks. A BLAS packs both operands into panels and clears C first, which takes as long as
// such a product; here A is read in place. B is copied if its rows are not contiguous; otherwise
// only the columns after its last whole tile are. Uses the micro-kernel of skinny_gemm.hpp. Without
// AVX2, and for other shapes, this file does nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include <cleave/kernels/host/skinny_gemm.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::kernels::detail {

#if defined(CLEAVE_VECTOR_TARGETS)

/// A tile of twelve accumulator registers, enough to hide the latency of multiply-adds.
template <class T, int Bytes>
struct SmallTile {
  static constexpr index_t cols = SkinnyTile<T, Bytes>::cols;
  static constexpr index_t rows = 12 / SkinnyTile<T, Bytes>::vectors;
  static constexpr index_t max_depth = 128;         ///< rows of B
  static constexpr index_t max_elements = 1 << 14;  ///< of B
};

/// Computes some rows of C, at least as many as a tile has.
/// @param b,b_step  rows of B and their stride; the columns after the last whole tile are in `edge`
template <class T, int Bytes>
[[gnu::always_inline]] inline void small_rows(const Matrix<const T>& a, const T* b, index_t b_step,
                                              const T* edge, const Matrix<T>& c) {
  using Sizes = SmallTile<T, Bytes>;
  constexpr index_t width = Sizes::cols;
  T sums[Sizes::rows * Sizes::cols];
  for (index_t j = 0; j < c.cols; j += width) {
    const index_t cols = std::min(width, c.cols - j);
    const T* const panel = cols == width ? b + j : edge;
    const index_t step = cols == width ? b_step : width;
    for (index_t i = 0; i < a.rows; i += Sizes::rows) {
      const index_t first = std::min(i, a.rows - Sizes::rows);  // the last tile overlaps another
      const T* const from = a.data + first * a.row_stride;
      T* const to = c.data + first * c.row_stride + j;
      if (cols == width) {
        skinny_tile<T, Bytes, int(Sizes::rows), false>(from, a.row_stride, a.col_stride, panel,
                                                       step, a.cols, to, c.row_stride, false);
        continue;
      }
      skinny_tile<T, Bytes, int(Sizes::rows), false>(from, a.row_stride, a.col_stride, panel, step,
                                                     a.cols, sums, width, false);
      for (index_t r = 0; r < Sizes::rows; ++r)
        for (index_t e = 0; e < cols; ++e) to[r * c.row_stride + e] = sums[r * width + e];
    }
  }
}

template <class T>
[[gnu::target("avx512f")]] void small_rows_512(const Matrix<const T>& a, const T* b, index_t b_step,
                                               const T* edge, const Matrix<T>& c) {
  small_rows<T, 64>(a, b, b_step, edge, c);
}
template <class T>
[[gnu::target("avx2,fma")]] void small_rows_256(const Matrix<const T>& a, const T* b,
                                                index_t b_step, const T* edge, const Matrix<T>& c) {
  small_rows<T, 32>(a, b, b_step, edge, c);
}

/// Computes the product if it is small. @return whether it is @pre no extent is 0
template <class T, int Bytes>
bool small_gemm_with(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  using Sizes = SmallTile<T, Bytes>;
  constexpr index_t width = Sizes::cols;
  const index_t m = a.rows, k = a.cols, n = b.cols;
  if (m < 2 * Sizes::rows || k < 4 || n < width || k > Sizes::max_depth ||
      k * n > Sizes::max_elements || c.col_stride != 1)
    return false;
  const index_t rest = n % width;
  std::unique_ptr<T[]> scratch;
  const T* rows = b.data;
  index_t step = b.row_stride;
  const index_t copied = b.col_stride != 1 ? k * n : 0;
  if (copied + rest > 0) scratch.reset(new T[std::size_t(copied + (rest > 0 ? k * width : 0))]);
  if (copied > 0) {
    const Shape extents(std::array<index_t, 2>{k, n});
    const Shape strides(std::array<index_t, 2>{b.row_stride, b.col_stride});
    strided_copy({const_cast<T*>(b.data), dtype_of<T>(), extents, strides},
                 View::dense(scratch.get(), dtype_of<T>(), extents));
    rows = scratch.get(), step = n;
  }
  T* const edge = scratch.get() + copied;
  for (index_t p = 0; rest > 0 && p < k; ++p)
    for (index_t j = 0; j < width; ++j)
      edge[p * width + j] = j < rest ? rows[p * step + n - rest + j] : T(0);
  // as many rows of A as stay in the L1 cache while they are multiplied with all columns of B
  const index_t many =
      std::max<index_t>(4, index_t(16384 / sizeof(T)) / k / Sizes::rows) * Sizes::rows;
  for (index_t i = 0; i < m; i += many) {
    const index_t first = m - i < Sizes::rows ? m - Sizes::rows : i;
    const index_t count = std::min(many, m - first);
    const Matrix<const T> some{a.data + first * a.row_stride, count, k, a.row_stride, a.col_stride};
    const Matrix<T> to{c.data + first * c.row_stride, count, n, c.row_stride, 1};
    if constexpr (Bytes == 64) small_rows_512<T>(some, rows, step, edge, to);
    else small_rows_256<T>(some, rows, step, edge, to);
  }
  return true;
}

/// Computes the product in place, with AVX-512 or AVX2, if its shape is one of those above.
/// @return whether it was computed
template <class T>
bool gemm_in_place(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  switch (widest_vectors()) {
    case 64: return skinny_gemm_with<T, 64>(a, b, c) || small_gemm_with<T, 64>(a, b, c);
    case 32: return skinny_gemm_with<T, 32>(a, b, c) || small_gemm_with<T, 32>(a, b, c);
    default: return false;
  }
}

#else

template <class T>
bool gemm_in_place(const Matrix<const T>&, const Matrix<const T>&, const Matrix<T>&) {
  return false;
}

#endif

}  // namespace cleave::kernels::detail
