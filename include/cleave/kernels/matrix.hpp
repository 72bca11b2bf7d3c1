// Strided matrices as arguments of kernels.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

/// Element (i, j) lies at data[i * row_stride + j * col_stride].
template <class T>
struct Matrix {
  T* data = nullptr;
  index_t rows = 0;
  index_t cols = 0;
  index_t row_stride = 0;
  index_t col_stride = 1;
};

/// The transposed view of the same elements.
template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

/// A strided batch of products: matrix i of an operand starts i · stride elements after matrix 0.
/// A stride of 0 uses one matrix for all products.
struct Batches {
  index_t count = 1;
  index_t a_stride = 0;
  index_t b_stride = 0;
  index_t c_stride = 0;
};

/// A two-dimensional strided array as a matrix.
template <class T>
Matrix<T> as_matrix(const Strided<T>& s) {
  return {s.data, s.extents[0], s.extents[1], s.strides[0], s.strides[1]};
}

}  // namespace cleave::inline v0::kernels
