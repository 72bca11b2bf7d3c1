// Orthonormalises the rows of a matrix, on the host.
#pragma once

#include <cmath>
#include <limits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

template <class T>
T dot(index_t n, const T* a, const T* b) {
  T sums[8] = {};
  index_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (index_t k = 0; k < 8; ++k) sums[k] += a[j + k] * b[j + k];
  for (; j < n; ++j) sums[0] += a[j] * b[j];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// y += factor * x
template <class T>
void add_multiple(index_t n, T factor, const T* x, T* y) {
  for (index_t j = 0; j < n; ++j) y[j] += factor * x[j];
}

/// Makes the rows of a matrix orthonormal, one after another, by the Gram-Schmidt process; each is
/// orthogonalised twice, which is enough (L. Giraud, J. Langou, M. Rozloznik: The loss of
/// orthogonality in the Gram-Schmidt orthogonalization process. Comput. Math. Appl. 50 (2005)).
/// For a matrix of normal random numbers, the result is uniformly distributed over the orthonormal
/// sets. A row in the span of the rows before it becomes 0.
///
/// @param rows     at most `columns`
/// @param q        row-major, read and written
/// @return         whether the rows are linearly independent
/// @cost           2 rows^2 columns multiplications and additions
template <class T>
bool orthonormalize_rows(index_t rows, index_t columns, T* q) {
  bool is_full = true;
  for (index_t i = 0; i < rows; ++i) {
    T* const row = q + i * columns;
    const T before = std::sqrt(dot(columns, row, row));
    for (int pass = 0; pass < 2; ++pass)
      for (index_t k = 0; k < i; ++k)
        add_multiple(columns, -dot(columns, row, q + k * columns), q + k * columns, row);
    const T length = std::sqrt(dot(columns, row, row));
    const bool vanishes = length <= before * std::sqrt(std::numeric_limits<T>::epsilon());
    for (index_t j = 0; j < columns; ++j) row[j] = vanishes ? T(0) : row[j] / length;
    is_full = is_full && !vanishes;
  }
  return is_full;
}

}  // namespace cleave::inline v0::kernels
