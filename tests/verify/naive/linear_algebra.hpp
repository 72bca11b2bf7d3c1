#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "../list/linear_algebra.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// For the matrices of batches [a, n, n] whose rows have large elements on the diagonal.
inline Naive of_matrices(std::function<Numbers(const Arrays&)> result, bool has_sides = false) {
  Naive naive{std::move(result)};
  naive.domain = {Domain::dominant};
  naive.letters = {"abb"};
  if (has_sides) naive.letters.emplace_back("abc");
  naive.extents = {{3, 4, 2}, {2, 1, 5}, {5, 3, 1}, {2, 0, 3}, {0, 3, 2}};
  return naive;
}

/// Solves a x = b by elimination with row exchanges, for the columns of b. @return x, and det(a)
inline std::pair<Numbers, Number64> eliminated(Numbers a, Numbers b) {
  const index_t n = a.shape[0], columns = b.shape[1];
  Number64 determinant = 1;
  for (index_t k = 0; k < n; ++k) {
    index_t best = k;
    for (index_t i = k; i < n; ++i)
      if (std::abs(a.at({i, k})) > std::abs(a.at({best, k}))) best = i;
    for (index_t j = 0; j < n; ++j) std::swap(a.at({k, j}), a.at({best, j}));
    for (index_t j = 0; j < columns; ++j) std::swap(b.at({k, j}), b.at({best, j}));
    determinant *= best == k ? a.at({k, k}) : -a.at({k, k});
    for (index_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const Number64 factor = a.at({i, k}) / a.at({k, k});
      for (index_t j = 0; j < n; ++j) a.at({i, j}) -= factor * a.at({k, j});
      for (index_t j = 0; j < columns; ++j) b.at({i, j}) -= factor * b.at({k, j});
    }
  }
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < columns; ++j) b.at({i, j}) /= a.at({i, i});
  return {b, determinant};
}

/// Matrix `batch` of an array.
inline Numbers matrix_of(const Numbers& x, index_t batch) {
  Numbers y({x.shape[1], x.shape[2]});
  for (const naive::Indices& at : naive::all_indices(y.shape))
    y.at(at) = x.at({batch, at[0], at[1]});
  return y;
}
/// f(matrix.. of each batch), put together.
template <class F>
Numbers by_matrix(const naive::Indices& shape, const F& f) {
  Numbers y(shape);
  for (index_t batch = 0; batch < shape[0]; ++batch) {
    const Numbers one = f(batch);
    for (const naive::Indices& at : naive::all_indices(one.shape))
      y.at({batch, at[0], at[1]}) = one.at(at);
  }
  return y;
}

inline Naive naive_of(ops::Solve) {
  return of_matrices(
      [](const Arrays& x) {
        return by_matrix(x[1].shape, [&](index_t batch) {
          return eliminated(matrix_of(x[0], batch), matrix_of(x[1], batch)).first;
        });
      },
      true);
}
inline Naive naive_of(ops::TriangularSolve) {
  return of_matrices(
      [](const Arrays& x) {
        return by_matrix(x[1].shape, [&](index_t batch) {
          Numbers a = matrix_of(x[0], batch);
          for (const naive::Indices& at : naive::all_indices(a.shape))
            if (at[0] > at[1]) a.at(at) = 0;
          return eliminated(a, matrix_of(x[1], batch)).first;
        });
      },
      true);
}
inline Naive naive_of(ops::Inverse) {
  return of_matrices([](const Arrays& x) {
    return by_matrix(x[0].shape, [&](index_t batch) {
      Numbers one({x[0].shape[1], x[0].shape[1]});
      for (index_t i = 0; i < one.shape[0]; ++i) one.at({i, i}) = 1;
      return eliminated(matrix_of(x[0], batch), one).first;
    });
  });
}
inline Naive naive_of(ops::Determinant) {
  return of_matrices([](const Arrays& x) {
    Numbers y({x[0].shape[0]});
    for (index_t batch = 0; batch < y.shape[0]; ++batch)
      y.at({batch}) = eliminated(matrix_of(x[0], batch), Numbers({x[0].shape[1], 0})).second;
    return y;
  });
}
/// Column by column, from the lower triangle.
inline Naive naive_of(ops::Cholesky) {
  return of_matrices([](const Arrays& x) {
    return by_matrix(x[0].shape, [&](index_t batch) {
      const Numbers a = matrix_of(x[0], batch);
      Numbers l(a.shape);
      for (index_t j = 0; j < a.shape[0]; ++j)
        for (index_t i = j; i < a.shape[0]; ++i) {
          Number64 rest = i == j ? a.at({i, i}).real() : a.at({i, j});
          for (index_t k = 0; k < j; ++k) rest -= l.at({i, k}) * std::conj(l.at({j, k}));
          l.at({i, j}) = i == j ? std::sqrt(rest.real()) : rest / l.at({j, j});
        }
      return l;
    });
  });
}

}  // namespace cleave::testing
