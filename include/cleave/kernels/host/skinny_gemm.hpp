// C = A · B where C is narrow (a few columns, many rows) or small (a few rows, a long sum):
// products that read a large operand once and compute little with each element. A BLAS packs both
// operands into panels first, which takes longer than the product; here the large operand is read
// in place.
//
// The micro-kernel is compiled for AVX2 and AVX-512, whatever the target of the program, and chosen
// at run time. Without either instruction set, and for other shapes, this file does nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/widest_vectors.hpp>
#include <cleave/kernels/matrix.hpp>

namespace cleave::kernels::detail {

#if defined(CLEAVE_VECTOR_TARGETS)

/// The register tile for one vector size.
template <class T, int Bytes>
struct SkinnyTile {
  static constexpr int lanes = Bytes / int(sizeof(T));
  static constexpr int vectors = Bytes == 64 ? (lanes == 8 ? 2 : 1) : (lanes == 4 ? 3 : 2);
  static constexpr int cols = vectors * lanes;
  static constexpr int tall = Bytes == 64 ? 8 : 4;  ///< rows if each is addressed separately
  static constexpr int low = Bytes == 64 ? 12 : 4;  ///< rows if columns of A are contiguous
};

/// The micro-kernel: sums[Rows, cols] (+)= A[Rows, depth] · B[depth, cols].
///
/// @param row   row stride of A, in elements; `step` is its column stride, `b_step` B's row stride
/// @param to    the sums, written row by row in ascending order, with row stride `stride`
/// @param more  whether to add to the existing sums
/// @tparam Ahead  prefetches later rows of A: hardware prefetchers do not detect the pattern of
///                reading several rows at once
template <class T, int Bytes, int Rows, bool Ahead>
[[gnu::always_inline]] inline void skinny_tile(const T* a, index_t row, index_t step, const T* b,
                                               index_t b_step, index_t depth, T* to, index_t stride,
                                               bool more) {
  using Sizes = SkinnyTile<T, Bytes>;
  typedef T Vector __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  Vector sum[Rows][Sizes::vectors] = {};
  for (index_t p = 0; p < depth; ++p) {
    if (Ahead && p % (64 / int(sizeof(T))) == 0) {
      CLEAVE_UNROLL
      for (int i = 0; i < Rows; ++i) __builtin_prefetch(a + (i + 4 * Rows) * row);
    }
    Vector right[Sizes::vectors];
    CLEAVE_UNROLL
    for (int j = 0; j < Sizes::vectors; ++j)
      right[j] = *reinterpret_cast<const Vector*>(b + j * Sizes::lanes);
    CLEAVE_UNROLL
    for (int i = 0; i < Rows; ++i) {
      CLEAVE_UNROLL
      for (int j = 0; j < Sizes::vectors; ++j) sum[i][j] += a[i * row] * right[j];
    }
    a += step;
    b += b_step;
  }
  CLEAVE_UNROLL
  for (int i = 0; i < Rows; ++i) {
    CLEAVE_UNROLL
    for (int j = 0; j < Sizes::vectors; ++j) {
      Vector& out = *reinterpret_cast<Vector*>(to + i * stride + j * Sizes::lanes);
      out = more ? out + sum[i][j] : sum[i][j];
    }
  }
}

/// The narrow product: A is read in place.
/// @param b  packed panel: depth rows of SkinnyTile::cols elements
template <class T, int Bytes>
[[gnu::always_inline]] inline void skinny_tall(const Matrix<const T>& a, const T* b, T* c,
                                               index_t stride, index_t cols) {
  using Sizes = SkinnyTile<T, Bytes>;
  constexpr int rows = Sizes::tall;
  // whole tiles are stored, beyond the end of each row; later rows overwrite the excess
  const index_t beyond = (Sizes::cols - cols + cols - 1) / cols;
  T sums[rows * Sizes::cols];
  index_t i = 0;
  if (stride == cols)
    for (; i + rows + beyond <= a.rows; i += rows)
      skinny_tile<T, Bytes, rows, true>(a.data + i * a.row_stride, a.row_stride, 1, b, Sizes::cols,
                                        a.cols, c + i * stride, stride, false);
  for (; i < a.rows; i += rows) {
    const index_t first = std::min(i, a.rows - rows);  // the last tile may overlap
    skinny_tile<T, Bytes, rows, true>(a.data + first * a.row_stride, a.row_stride, 1, b,
                                      Sizes::cols, a.cols, sums, Sizes::cols, false);
    for (int r = 0; r < rows; ++r)
      for (index_t j = 0; j < cols; ++j) c[(first + r) * stride + j] = sums[r * Sizes::cols + j];
  }
}

/// The long sum: B is read in place.
/// @param a     columns, `step` apart, of at least `low` readable elements; not all need be of A
/// @param sums  tiles of [low, cols] for all columns of B
/// @param b     only whole tiles of its columns are used
template <class T, int Bytes>
[[gnu::always_inline]] inline void skinny_low(const T* a, index_t step, const Matrix<const T>& b,
                                              T* sums, bool more) {
  using Sizes = SkinnyTile<T, Bytes>;
  for (index_t j = 0; j + Sizes::cols <= b.cols; j += Sizes::cols, sums += Sizes::low * Sizes::cols)
    skinny_tile<T, Bytes, Sizes::low, false>(a, 1, step, b.data + j, b.row_stride, b.rows, sums,
                                             Sizes::cols, more);
}

template <class T>
[[gnu::target("avx512f")]] void skinny_tall_512(const Matrix<const T>& a, const T* b, T* c,
                                                index_t stride, index_t cols) {
  skinny_tall<T, 64>(a, b, c, stride, cols);
}
template <class T>
[[gnu::target("avx2,fma")]] void skinny_tall_256(const Matrix<const T>& a, const T* b, T* c,
                                                 index_t stride, index_t cols) {
  skinny_tall<T, 32>(a, b, c, stride, cols);
}
template <class T>
[[gnu::target("avx512f")]] void skinny_low_512(const T* a, index_t step, const Matrix<const T>& b,
                                               T* sums, bool more) {
  skinny_low<T, 64>(a, step, b, sums, more);
}
template <class T>
[[gnu::target("avx2,fma")]] void skinny_low_256(const T* a, index_t step, const Matrix<const T>& b,
                                                T* sums, bool more) {
  skinny_low<T, 32>(a, step, b, sums, more);
}

/// @pre a has at least `tall` rows; rows of a and c are contiguous
template <class T, int Bytes>
void narrow_gemm(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  constexpr index_t width = SkinnyTile<T, Bytes>::cols;
  const std::unique_ptr<T[]> panel(new T[std::size_t(b.rows * width)]);
  for (index_t j = 0; j < b.cols; j += width) {
    const index_t cols = std::min(width, b.cols - j);
    for (index_t p = 0; p < b.rows; ++p)
      for (index_t i = 0; i < width; ++i)
        panel[std::size_t(p * width + i)] =
            i < cols ? b.data[p * b.row_stride + (j + i) * b.col_stride] : T(0);
    if constexpr (Bytes == 64) skinny_tall_512<T>(a, panel.get(), c.data + j, c.row_stride, cols);
    else skinny_tall_256<T>(a, panel.get(), c.data + j, c.row_stride, cols);
  }
}

/// @pre rows of b and c are contiguous
template <class T, int Bytes>
void long_sum_gemm(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  using Sizes = SkinnyTile<T, Bytes>;
  constexpr index_t low = Sizes::low, width = Sizes::cols;
  const index_t whole = b.cols / width * width, rest = b.cols - whole;
  // as many rows of B as stay in the L2 cache while all rows of A are multiplied with them
  const index_t depth =
      std::clamp<index_t>((index_t{128} << 10) / (b.cols * index_t(sizeof(T))), 16, 1024);
  const index_t tiles = (b.cols + width - 1) / width;
  const index_t passes = (a.rows + low - 1) / low;
  const std::unique_ptr<T[]> panel(new T[std::size_t(depth * low)]);
  const std::unique_ptr<T[]> edge(new T[std::size_t(rest == 0 ? 0 : depth * width)]);
  const std::unique_ptr<T[]> sums(new T[std::size_t(passes * tiles * low * width)]);
  for (index_t p0 = 0; p0 < b.rows; p0 += depth) {
    const index_t np = std::min(depth, b.rows - p0);
    const T* block = b.data + p0 * b.row_stride;
    for (index_t p = 0; rest != 0 && p < np; ++p)
      for (index_t j = 0; j < width; ++j)
        edge[std::size_t(p * width + j)] = j < rest ? block[p * b.row_stride + whole + j] : T(0);
    for (index_t pass = 0; pass < passes; ++pass) {
      const index_t rows = std::min(low, a.rows - pass * low);
      const T* from = a.data + pass * low * a.row_stride + p0 * a.col_stride;
      // contiguous columns of A are read in place; the elements after them give sums that are not
      // used, but must be readable
      const bool in_memory = a.row_stride == 1 && low - rows <= a.col_stride && p0 + np < b.rows;
      for (index_t p = 0; p < np && !in_memory; ++p)
        for (index_t i = 0; i < low; ++i)
          panel[std::size_t(p * low + i)] =
              i < rows ? from[i * a.row_stride + p * a.col_stride] : T(0);
      const T* columns = in_memory ? from : panel.get();
      const index_t step = in_memory ? a.col_stride : low;
      T* to = sums.get() + pass * tiles * low * width;
      const Matrix<const T> in_place{block, np, whole, b.row_stride, 1};
      const Matrix<const T> at_edge{edge.get(), rest == 0 ? 0 : np, rest == 0 ? 0 : width, width,
                                    1};
      if constexpr (Bytes == 64) {
        skinny_low_512<T>(columns, step, in_place, to, p0 != 0);
        skinny_low_512<T>(columns, step, at_edge, to + whole * low, p0 != 0);
      } else {
        skinny_low_256<T>(columns, step, in_place, to, p0 != 0);
        skinny_low_256<T>(columns, step, at_edge, to + whole * low, p0 != 0);
      }
    }
  }
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < b.cols; ++j)
      c.data[i * c.row_stride + j] =
          sums[std::size_t(((i / low * tiles + j / width) * low + i % low) * width + j % width)];
}

/// Computes the product if it has one of the two shapes. @return whether it has @pre no extent is 0
template <class T, int Bytes>
bool skinny_gemm_with(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  using Sizes = SkinnyTile<T, Bytes>;
  const index_t m = a.rows, k = a.cols, n = b.cols;
  if (n <= Sizes::cols && 2 * n >= Sizes::cols && m >= 256 && k >= 8 && k <= 2048 &&
      a.col_stride == 1) {
    narrow_gemm<T, Bytes>(a, b, c);
    return true;
  }
  const index_t rows = (m + Sizes::low - 1) / Sizes::low * Sizes::low;
  const index_t cols = (n + Sizes::cols - 1) / Sizes::cols * Sizes::cols;
  if (m <= 32 && k >= 4096 && m * n <= index_t{1} << 15 && 2 * rows * cols <= 3 * m * n &&
      b.col_stride == 1) {
    long_sum_gemm<T, Bytes>(a, b, c);
    return true;
  }
  return false;
}

#endif

}  // namespace cleave::kernels::detail
