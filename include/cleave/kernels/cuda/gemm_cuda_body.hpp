// Matrix products on a GPU: with cuBLASLt, or by the kernel of tiled_gemm.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/cuda/cublaslt_gemm.hpp>
#include <cleave/kernels/cuda/gemm_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/cuda/tiled_gemm.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// A contiguous copy of the matrices of a batch.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix(const kernels::Matrix<const T>& m, index_t batch_stride, index_t batches)
      : one_(batches == 1 || batch_stride == 0) {
    const Shape extents(std::array<index_t, 3>{one_ ? 1 : batches, m.rows, m.cols});
    const Shape strides(std::array<index_t, 3>{batch_stride, m.row_stride, m.col_stride});
    memory_ = allocate_bytes(Cuda{}, std::size_t(extents.product()) * sizeof(T));
    matrix_ = {static_cast<const T*>(memory_.get()), m.rows, m.cols, m.cols, 1};
    strided_copy(Cuda{}, ConstView{m.data, dtype_of<T>(), extents, strides},
                 View::dense(memory_.get(), dtype_of<T>(), extents));
  }

  const kernels::Matrix<const T>& matrix() const { return matrix_; }
  index_t batch_stride() const { return one_ ? 0 : matrix_.rows * matrix_.cols; }

 private:
  bool one_;
  std::shared_ptr<void> memory_;
  kernels::Matrix<const T> matrix_;
};

/// A product in parts that cuBLASLt's limits allow.
/// @throws Error if cuBLASLt cannot compute it with these operands
template <class T>
void cublaslt_gemm_in_parts(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                            const kernels::Matrix<T>& c, const kernels::Batches& batches,
                            bool add) {
  const index_t rows_at_once =
      std::is_same_v<T, std::complex<float>> ? max_complex_columns : c.rows;
  for (index_t batch = 0; batch < batches.count; batch += max_batches)
    for (index_t row = 0; row < c.rows; row += rows_at_once) {
      kernels::Batches part = batches;
      part.count = std::min(batches.count - batch, max_batches);
      const auto cut = [&](auto m, index_t stride) {
        m.data += batch * stride + row * m.row_stride;
        m.rows = std::min(c.rows - row, rows_at_once);
        return m;
      };
      kernels::Matrix<const T> factor = b;
      factor.data += batch * batches.b_stride;
      if (!cublaslt_gemm(cut(a, batches.a_stride), factor, cut(c, batches.c_stride), part, add))
        throw Error(
            "matmul",
            "the result is not aligned to its element type, or its rows are not contiguous");
    }
}

template <class T>
void gemm_matrices(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const kernels::Batches& batches, bool add) {
  if (c.rows == 0 || c.cols == 0 || batches.count == 0 || (add && a.cols == 0)) return;
  if (a.cols == 0)
    return strided_fill(
        Cuda{},
        View{c.data, dtype_of<T>(), Shape(std::array<index_t, 3>{batches.count, c.rows, c.cols}),
             Shape(std::array<index_t, 3>{batches.c_stride, c.row_stride, c.col_stride})},
        T(0));
  if constexpr (cublaslt_knows<T>) {
    LtOperand ignored;
    const auto fits = [&](const auto& m, index_t stride) {
      return describe(m, stride, batches.count, ignored);
    };
    kernels::Batches packed = batches;
    std::optional<PackedMatrix<T>> packed_a, packed_b;
    if (!fits(a, batches.a_stride)) {
      packed_a.emplace(a, batches.a_stride, batches.count);
      packed.a_stride = packed_a->batch_stride();
    }
    if (!fits(b, batches.b_stride)) {
      packed_b.emplace(b, batches.b_stride, batches.count);
      packed.b_stride = packed_b->batch_stride();
    }
    cublaslt_gemm_in_parts(packed_a ? packed_a->matrix() : a, packed_b ? packed_b->matrix() : b, c,
                           packed, add);
  } else {
    tiled_gemm(a, b, c, batches, add);
  }
}

template <class T>
bool gemm_and_bias(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const T* bias) {
  if (c.rows == 0 || c.cols == 0 || a.cols == 0) return false;
  return cublaslt_gemm(a, b, c, kernels::Batches{}, false, bias);
}

}  // namespace cuda::detail

}  // namespace cleave::inline v0
