// C = A · B or C += A · B through CBLAS, for float, double and complex of both.
//
// The BLAS chooses the number of threads. @see blas_threads.hpp
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

// OpenBLAS declares a global type of this name, which would make `bfloat16` ambiguous for users.
#define bfloat16 openblas_bfloat16
#include <cblas.h>
#undef bfloat16

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/matrix.hpp>

namespace cleave::inline v0::kernels::detail {

template <class T>
inline constexpr bool blas_knows =
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The CBLAS arguments for an operand of a row-major product.
struct BlasOperand {
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
  int leading = 1;
  bool fits = false;  ///< whether CBLAS can use it in place
};

template <class T>
BlasOperand blas_operand(const Matrix<T>& m) {
  constexpr index_t limit = std::numeric_limits<int>::max();
  const auto describe = [&](CBLAS_TRANSPOSE transpose, index_t stride, index_t count,
                            index_t length) -> BlasOperand {
    const index_t leading = count == 1 ? length : stride;  // a single row has no stride
    return {transpose, int(leading), leading >= length && leading >= 1 && leading <= limit};
  };
  if (m.rows > limit || m.cols > limit) return {};
  if (m.col_stride == 1 || m.cols == 1) {
    const BlasOperand plain = describe(CblasNoTrans, m.row_stride, m.rows, m.cols);
    if (plain.fits) return plain;
  }
  if (m.row_stride == 1 || m.rows == 1) return describe(CblasTrans, m.col_stride, m.cols, m.rows);
  return {};
}

/// Computes C if CBLAS can use all operands in place. @pre no extent is 0 @return whether it did
template <class T>
bool cblas_gemm(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, bool add) {
  const BlasOperand pa = blas_operand(a), pb = blas_operand(b), pc = blas_operand(c);
  if (!pa.fits || !pb.fits || !pc.fits || pc.transpose != CblasNoTrans) return false;
  const int m = int(c.rows), n = int(c.cols), k = int(a.cols);
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, pa.transpose, pb.transpose, m, n, k, 1.0f, a.data, pa.leading,
                b.data, pb.leading, add ? 1.0f : 0.0f, c.data, pc.leading);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dgemm(CblasRowMajor, pa.transpose, pb.transpose, m, n, k, 1.0, a.data, pa.leading, b.data,
                pb.leading, add ? 1.0 : 0.0, c.data, pc.leading);
  } else {
    const T one = 1, beta = add ? 1 : 0;
    const auto product = [&](auto* gemm) {
      gemm(CblasRowMajor, pa.transpose, pb.transpose, m, n, k, &one, a.data, pa.leading, b.data,
           pb.leading, &beta, c.data, pc.leading);
    };
    if constexpr (std::is_same_v<T, std::complex<float>>) product(cblas_cgemm);
    else product(cblas_zgemm);
  }
  return true;
}

}  // namespace cleave::inline v0::kernels::detail
