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
/// conj(transpose(x)) and x y of matrices.
inline Numbers adjoint_of(const Numbers& x) {
  Numbers y({x.shape[1], x.shape[0]});
  for (const naive::Indices& at : naive::all_indices(y.shape))
    y.at(at) = std::conj(x.at({at[1], at[0]}));
  return y;
}
inline Numbers product_of(const Numbers& x, const Numbers& y) {
  Numbers z({x.shape[0], y.shape[1]});
  for (const naive::Indices& at : naive::all_indices(z.shape))
    for (index_t k = 0; k < x.shape[1]; ++k) z.at(at) += x.at({at[0], k}) * y.at({k, at[1]});
  return z;
}
inline Numbers squares_of(Numbers x) {
  for (Number64& value : x.values) value *= value;
  return x;
}
/// For the matrices of batches [a, b, c], tall, wide and square.
template <class F>
Naive of_any_matrices(const F& f) {
  Naive naive{[f](const Arrays& x) {
    return by_matrix(x[0].shape, [&](index_t batch) { return f(matrix_of(x[0], batch)); });
  }};
  naive.domain = {Domain::dominant};
  naive.letters = {"abc"};
  naive.extents = {{3, 4, 2}, {2, 3, 5}, {5, 3, 3}, {2, 1, 1}, {2, 0, 3}, {1, 3, 0}, {0, 3, 2}};
  return naive;
}

/// By the normal equations.
inline Naive naive_of(ops::LeastSquares) {
  Naive naive{[](const Arrays& x) {
    const naive::Indices shape{x[0].shape[0], x[0].shape[2], x[1].shape[2]};
    return by_matrix(shape, [&](index_t batch) {
      const Numbers a = matrix_of(x[0], batch), b = matrix_of(x[1], batch), up = adjoint_of(a);
      return a.shape[0] < a.shape[1] ? product_of(up, eliminated(product_of(a, up), b).first)
                                     : eliminated(product_of(up, a), product_of(up, b)).first;
    });
  }};
  naive.domain = {Domain::dominant};
  naive.letters = {"abc", "abd"};
  naive.extents = {{3, 4, 2, 2}, {2, 3, 5, 1}, {5, 3, 3, 2},
                   {2, 0, 3, 2}, {1, 3, 0, 2}, {0, 3, 2, 2}};
  return naive;
}
inline Naive naive_of(ops::OfLogDeterminant) {
  return of_matrices([](const Arrays& x) {
    Numbers y({x[0].shape[0]});
    for (index_t batch = 0; batch < y.shape[0]; ++batch) {
      const Number64 d = eliminated(matrix_of(x[0], batch), Numbers({x[0].shape[1], 0})).second;
      y.at({batch}) = d / std::abs(d) * (1 + std::log(std::abs(d)));
    }
    return y;
  });
}
/// Column by column, after the exchange of rows that makes the diagonal largest.
inline Naive naive_of(ops::OfLuFactors) {
  return of_any_matrices([](const Numbers& x) {
    const index_t m = x.shape[0], n = x.shape[1], k = std::min(m, n);
    Numbers u({m, n}), l({m, k}), y({m, n});
    std::vector<index_t> row;
    for (index_t i = 0; i < m; ++i) row.push_back(i);
    for (const naive::Indices& at : naive::all_indices(x.shape))
      u.at(at) = x.at({m - 1 - at[0], at[1]});
    for (index_t j = 0; j < k; ++j) {
      index_t best = j;
      for (index_t i = j; i < m; ++i)
        if (std::abs(u.at({i, j})) > std::abs(u.at({best, j}))) best = i;
      for (index_t c = 0; c < n; ++c) std::swap(u.at({j, c}), u.at({best, c}));
      for (index_t c = 0; c < j; ++c) std::swap(l.at({j, c}), l.at({best, c}));
      std::swap(row[std::size_t(j)], row[std::size_t(best)]);
      l.at({j, j}) = 1;
      for (index_t i = j + 1; i < m; ++i) {
        const Number64 factor = l.at({i, j}) = u.at({i, j}) / u.at({j, j});
        for (index_t c = 0; c < n; ++c) u.at({i, c}) -= factor * u.at({j, c});
      }
    }
    for (const naive::Indices& at : naive::all_indices(y.shape))
      for (index_t c = 0; c < std::min(k, at[1] + 1); ++c)
        y.at({row[std::size_t(at[0])], at[1]}) +=
            l.at({at[0], c}) * l.at({at[0], c}) * u.at({c, at[1]}) * u.at({c, at[1]});
    return y;
  });
}
/// Orthonormal columns by projection, twice.
inline Naive naive_of(ops::OfQrFactors) {
  return of_any_matrices([](const Numbers& x) {
    const index_t m = x.shape[0], k = std::min(m, x.shape[1]);
    Numbers q({m, k});
    for (index_t j = 0; j < k; ++j) {
      for (index_t i = 0; i < m; ++i) q.at({i, j}) = x.at({i, j});
      for (index_t before = 0; before < 2 * j; ++before) {
        Number64 along = 0;
        for (index_t i = 0; i < m; ++i) along += std::conj(q.at({i, before % j})) * q.at({i, j});
        for (index_t i = 0; i < m; ++i) q.at({i, j}) -= along * q.at({i, before % j});
      }
      double size = 0;
      for (index_t i = 0; i < m; ++i) size += std::norm(q.at({i, j}));
      for (index_t i = 0; i < m; ++i) q.at({i, j}) /= std::sqrt(size);
    }
    Numbers r = product_of(adjoint_of(q), x);
    for (const naive::Indices& at : naive::all_indices(r.shape))
      if (at[0] > at[1]) r.at(at) = 0;
    return product_of(q, squares_of(r));
  });
}

/// The factors of x x^H x are those of x, with the cubes of the values.
inline Numbers cube_of(const Numbers& x) { return product_of(product_of(x, adjoint_of(x)), x); }

inline Naive naive_of(ops::OfSingularValues) { return of_any_matrices(cube_of); }
inline Naive naive_of(ops::OfEigenvalues) {
  return of_matrices([](const Arrays& x) {
    return by_matrix(x[0].shape, [&](index_t batch) {
      Numbers a = matrix_of(x[0], batch);
      for (const naive::Indices& at : naive::all_indices(a.shape))
        if (at[0] == at[1]) a.at(at) = a.at(at).real();
        else if (at[0] < at[1]) a.at(at) = std::conj(a.at({at[1], at[0]}));
      return cube_of(a);
    });
  });
}

}  // namespace cleave::testing
