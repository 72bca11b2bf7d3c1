// Matrices as kernels see them.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::kernels {

/// Element (i, j) lies at data[i * row_stride + j * col_stride].
template <class T>
struct Matrix {
  T* data = nullptr;
  index_t rows = 0;
  index_t cols = 0;
  index_t row_stride = 0;
  index_t col_stride = 1;
};

/// The same elements, rows as columns.
template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

/// How many products are computed at once: matrix i of an operand lies i times its stride behind
/// the first. A stride of 0 uses one matrix for all.
struct Batches {
  index_t count = 1;
  index_t a_stride = 0;
  index_t b_stride = 0;
  index_t c_stride = 0;
};

/// A strided array of two dimensions as a matrix.
template <class T>
Matrix<T> as_matrix(const Strided<T>& s) {
  return {s.data, s.extents[0], s.extents[1], s.strides[0], s.strides[1]};
}

}  // namespace cleave::kernels
