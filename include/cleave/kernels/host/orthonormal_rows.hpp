// Rows made orthonormal, on the host.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <cleave/core/config.hpp>

namespace cleave::kernels {

/// Makes the rows of a matrix orthonormal, one after the other, by Gram-Schmidt; each is
/// orthogonalised twice, which is enough (L. Giraud, J. Langou, M. Rozloznik: The loss of
/// orthogonality in the Gram-Schmidt orthogonalization process. Comput. Math. Appl. 50 (2005)).
/// Of a matrix of normal numbers, that gives every orthonormal set with equal probability.
///
/// @param rows     at most `columns`; linearly independent
/// @param q        row-major, read and written
/// @cost           2 rows^2 columns multiplications and additions
inline void orthonormalize_rows(index_t rows, index_t columns, double* q) {
  const auto dot = [columns](const double* a, const double* b) {
    double sums[4] = {0, 0, 0, 0};
    index_t j = 0;
    for (; j + 4 <= columns; j += 4)
      for (int k = 0; k < 4; ++k) sums[k] += a[j + k] * b[j + k];
    for (; j < columns; ++j) sums[0] += a[j] * b[j];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
  };
  std::vector<double> along(std::size_t(rows), 0.0);
  for (index_t i = 0; i < rows; ++i) {
    double* const row = q + i * columns;
    for (int pass = 0; pass < 2; ++pass) {
      for (index_t k = 0; k < i; ++k) along[std::size_t(k)] = dot(row, q + k * columns);
      for (index_t k = 0; k < i; ++k)
        for (index_t j = 0; j < columns; ++j)
          row[j] -= along[std::size_t(k)] * q[k * columns + j];
    }
    const double length = std::sqrt(dot(row, row));
    for (index_t j = 0; j < columns; ++j) row[j] /= length;
  }
}

}  // namespace cleave::kernels
