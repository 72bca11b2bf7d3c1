// C = A · B or C += A · B on the CPU: by loops that read A in place if the product is narrow; else
// with CBLAS, if the build has found one and it supports the element type; else by the blocked
// loops of blocked_gemm.hpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/host/blocked_gemm.hpp>
#include <cleave/kernels/host/skinny_gemm.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/tensor/storage.hpp>
#if defined(CLEAVE_HAS_CBLAS) && CLEAVE_HAS_CBLAS
#include <cleave/kernels/host/cblas_gemm.hpp>
#endif

namespace cleave::inline v0::kernels {

/// Writes A · B to C, or adds it.
///
/// Sums of 16-bit floats are accumulated in float and rounded once; integers wrap.
///
/// @param a  [m, k], any strides; read in place where one of them is 1, else packed
/// @param b  [k, n], likewise
/// @param c    [m, n] with contiguous rows; must not overlap a or b
/// @param add  whether the product is added to what C has
template <class T>
void gemm(On<Host>, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
          bool add = false) {
  static_assert(!std::is_same_v<T, bool>, "cleave: a matrix product requires numbers, not bool");
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) {
    if (add) return;
    for (index_t i = 0; i < c.rows; ++i) std::fill_n(c.data + i * c.row_stride, c.cols, T(0));
    return;
  }
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (!add && detail::skinny_gemm(a, b, c)) return;
  }
#if defined(CLEAVE_HAS_CBLAS) && CLEAVE_HAS_CBLAS
  if constexpr (detail::blas_knows<T>) {
    if (detail::cblas_gemm(a, b, c, add)) return;
  }
#endif
  detail::blocked_gemm(a, b, c, add);
}

/// A batch of products of matrices of equal extents and strides, one after another.
template <class T>
void gemm_batched(On<Host> on, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                  const Batches& batches, bool add = false) {
  for (index_t i = 0; i < batches.count; ++i) {
    gemm(on, a, b, c, add);
    a.data += batches.a_stride;
    b.data += batches.b_stride;
    c.data += batches.c_stride;
  }
}

#if CLEAVE_COMPILED
extern template void gemm(On<Host>, const Matrix<const float>&, const Matrix<const float>&,
                          const Matrix<float>&, bool);
extern template void gemm(On<Host>, const Matrix<const double>&, const Matrix<const double>&,
                          const Matrix<double>&, bool);
#endif

}  // namespace cleave::inline v0::kernels
