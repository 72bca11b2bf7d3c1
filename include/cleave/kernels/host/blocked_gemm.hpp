// C = A · B or C += A · B without a BLAS: for builds that have none, and for element types that
// BLAS does not support (integers, 16-bit floats).
//
// The GotoBLAS scheme: blocks of A and B that fit the caches are packed into panels, whatever their
// strides, and a micro-kernel accumulates a register tile of C over k. Complex numbers are packed
// with real and imaginary parts separated, so that the same micro-kernel computes them.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <memory>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/matrix.hpp>

namespace cleave::inline v0::kernels::detail {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// The type in which products of T are computed: the real type of complex numbers, and unsigned
/// integers, which wrap.
template <class T>
using real_of = wrapping_t<real_t<T>>;

/// Sizes of tiles and blocks, in elements, for sums in A.
template <class A>
struct GemmBlocks {
  using Real = real_of<A>;
  static constexpr int planes = is_complex<A> ? 2 : 1;  ///< real and imaginary parts
  static constexpr int lanes = vector_bytes / int(sizeof(Real));
  static constexpr int tile_rows = is_complex<A> ? 3 : 6;  ///< 12 accumulator registers
  static constexpr int tile_vectors = 2;
  static constexpr int tile_cols = tile_vectors * lanes;
  static constexpr index_t depth = 256;            ///< the panels of a tile fit the L1 cache
  static constexpr index_t rows = 16 * tile_rows;  ///< a block of A fits the L2 cache
  static constexpr index_t cols = 2048 / tile_cols * tile_cols;
};

constexpr index_t round_up(index_t n, index_t step) { return (n + step - 1) / step * step; }

/// Packs `count` lines of `length` elements (rows of A, columns of B) into panels of Width lines,
/// ordered by panel, position along the line, plane, line. Missing lines are filled with zeros.
template <class A, int Width, class T>
void pack_panels(const T* from, index_t count, index_t length, index_t line_stride,
                 index_t step_stride, real_of<A>* to) {
  using Real = real_of<A>;
  for (index_t first = 0; first < count; first += Width) {
    const int lines = int(std::min<index_t>(Width, count - first));
    for (index_t p = 0; p < length; ++p) {
      const T* at = from + first * line_stride + p * step_stride;
      for (int i = 0; i < Width; ++i) {
        const A value = i < lines ? A(at[i * line_stride]) : A(0);
        if constexpr (is_complex<A>) {
          to[i] = value.real();
          to[Width + i] = value.imag();
        } else {
          to[i] = Real(value);
        }
      }
      to += Width * GemmBlocks<A>::planes;
    }
  }
}

/// The micro-kernel: sums[plane][i][j] = the product of one panel of A and one of B.
template <class A>
void gemm_tile(const real_of<A>* a, const real_of<A>* b, index_t depth, real_of<A>* sums) {
  using B = GemmBlocks<A>;
  using Real = typename B::Real;
  typedef Real Vector __attribute__((vector_size(vector_bytes), aligned(alignof(Real)), may_alias));
  Vector sum[B::planes][B::tile_rows][B::tile_vectors] = {};
  for (index_t p = 0; p < depth; ++p) {
    Vector right[B::planes][B::tile_vectors];
    for (int q = 0; q < B::planes; ++q)
      for (int j = 0; j < B::tile_vectors; ++j)
        right[q][j] = *reinterpret_cast<const Vector*>(b + q * B::tile_cols + j * B::lanes);
    for (int i = 0; i < B::tile_rows; ++i) {
      for (int j = 0; j < B::tile_vectors; ++j) {
        if constexpr (is_complex<A>) {
          const Real re = a[i], im = a[B::tile_rows + i];
          sum[0][i][j] += re * right[0][j] - im * right[1][j];
          sum[1][i][j] += re * right[1][j] + im * right[0][j];
        } else {
          sum[0][i][j] += a[i] * right[0][j];
        }
      }
    }
    a += B::planes * B::tile_rows;
    b += B::planes * B::tile_cols;
  }
  for (int q = 0; q < B::planes; ++q)
    for (int i = 0; i < B::tile_rows; ++i)
      for (int j = 0; j < B::tile_vectors; ++j)
        *reinterpret_cast<Vector*>(sums + (q * B::tile_rows + i) * B::tile_cols + j * B::lanes) =
            sum[q][i][j];
}

/// Adds (or, for the first block along k, writes) the valid part of a tile to C.
template <class A>
void store_tile(const real_of<A>* sums, A* c, index_t stride, int rows, int cols, bool first) {
  using B = GemmBlocks<A>;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      A value;
      if constexpr (is_complex<A>)
        value = A(sums[i * B::tile_cols + j], sums[(B::tile_rows + i) * B::tile_cols + j]);
      else value = A(sums[i * B::tile_cols + j]);
      A& target = c[i * stride + j];
      target = first ? value : plus(target, value);
    }
  }
}

/// The loops over blocks. C has the type in which sums are accumulated; `add`: they are added to
/// it.
template <class A, class T>
void gemm_blocks(const Matrix<const T>& a, const Matrix<const T>& b, A* c, index_t c_stride,
                 bool add) {
  using B = GemmBlocks<A>;
  using Real = typename B::Real;
  const index_t m = a.rows, k = a.cols, n = b.cols;
  const index_t depth = std::min(k, B::depth);
  const auto buffer = [&](index_t lines, int width) {
    const index_t count = round_up(lines, width) * depth * B::planes;
    return std::unique_ptr<Real[]>(new Real[std::size_t(count)]);
  };
  const auto packed_a = buffer(std::min(m, B::rows), B::tile_rows);
  const auto packed_b = buffer(std::min(n, B::cols), B::tile_cols);
  Real sums[B::planes * B::tile_rows * B::tile_cols];

  for (index_t j0 = 0; j0 < n; j0 += B::cols) {
    const index_t nj = std::min(B::cols, n - j0);
    for (index_t p0 = 0; p0 < k; p0 += B::depth) {
      const index_t np = std::min(B::depth, k - p0);
      pack_panels<A, B::tile_cols>(b.data + p0 * b.row_stride + j0 * b.col_stride, nj, np,
                                   b.col_stride, b.row_stride, packed_b.get());
      for (index_t i0 = 0; i0 < m; i0 += B::rows) {
        const index_t ni = std::min(B::rows, m - i0);
        pack_panels<A, B::tile_rows>(a.data + i0 * a.row_stride + p0 * a.col_stride, ni, np,
                                     a.row_stride, a.col_stride, packed_a.get());
        for (index_t j = 0; j < nj; j += B::tile_cols) {
          for (index_t i = 0; i < ni; i += B::tile_rows) {
            gemm_tile<A>(packed_a.get() + i * np * B::planes, packed_b.get() + j * np * B::planes,
                         np, sums);
            store_tile<A>(sums, c + (i0 + i) * c_stride + j0 + j, c_stride,
                          int(std::min<index_t>(B::tile_rows, ni - i)),
                          int(std::min<index_t>(B::tile_cols, nj - j)), p0 == 0 && !add);
          }
        }
      }
    }
  }
}

/// @pre no extent is 0; the rows of c are contiguous
template <class T>
void blocked_gemm(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
                  bool add = false) {
  using A = accumulator_t<T>;
  if constexpr (std::is_same_v<A, T>) {
    gemm_blocks<A>(a, b, c.data, c.row_stride, add);
  } else {
    const std::unique_ptr<A[]> sums(new A[std::size_t(c.rows * c.cols)]);
    gemm_blocks<A>(a, b, sums.get(), c.cols, false);
    for (index_t i = 0; i < c.rows; ++i)
      for (index_t j = 0; j < c.cols; ++j) {
        T& target = c.data[i * c.row_stride + j];
        const A sum = sums[std::size_t(i * c.cols + j)];
        target = T(add ? plus(A(target), sum) : sum);
      }
  }
}

}  // namespace cleave::inline v0::kernels::detail
