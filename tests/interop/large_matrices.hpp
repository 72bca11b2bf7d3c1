// Matrices, their products by loops, and what tests of ScaLAPACK's functions on them share.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <string>

#include <cleave/core/dtype.hpp>
#include <cleave/tensor/tensor.hpp>

#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

namespace large_matrices {

using namespace cleave;

/// How far results of an element type may be from those of loops.
template <class T>
inline constexpr double tolerance = sizeof(T) / (is_complex<T> ? 2 : 1) == 4 ? 1e-4 : 1e-10;

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}

/// Some matrix: no element on the diagonal is large, so that rows must be exchanged.
template <class T>
Tensor<T, 2> some(index_t rows, index_t columns) {
  const Tensor<T, 2> x({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double value =
          double((i * 17 + j * 29 + i * j) % 23) / 23 + (i + j == rows - 1 ? 20 : 0);
      if constexpr (is_complex<T>) {
        using Real = typename T::value_type;
        x(i, j) = T(Real(value), Real(double((i + 2 * j) % 5) / 9));
      } else {
        x(i, j) = T(value);
      }
    }
  return x;
}

/// a b, or a b^H, by loops.
template <class T>
Tensor<T, 2> product(const Tensor<T, 2>& a, const Tensor<T, 2>& b, bool adjoint = false) {
  const Tensor<T, 2> y({a.extent(0), b.extent(adjoint ? 0 : 1)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) {
      T sum = 0;
      for (index_t k = 0; k < a.extent(1); ++k)
        sum += a(i, k) * (adjoint ? conjugate(b(j, k)) : b(k, j));
      y(i, j) = sum;
    }
  return y;
}

/// The largest difference, relative to the largest element of y.
template <class T>
double difference(const Tensor<T, 2>& x, const Tensor<T, 2>& y) {
  if (x.shape() != y.shape()) return 1;
  double error = 0, most = 0;
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) {
      const double by = double(std::abs(x(i, j) - y(i, j)));
      if (!std::isfinite(by)) return 1;
      error = std::max(error, by);
      most = std::max(most, double(std::abs(y(i, j))));
    }
  return error == 0 ? 0 : error / most;
}

template <class T>
Tensor<T, 2> adjoint(const Tensor<T, 2>& x) {
  const Tensor<T, 2> y({x.extent(1), x.extent(0)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) y(i, j) = conjugate(x(j, i));
  return y;
}

template <class T>
Tensor<T, 2> identity(index_t n) {
  const Tensor<T, 2> one({n, n});
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) one(i, j) = i == j ? T(1) : T(0);
  return one;
}

/// Whether what is below the diagonal is 0.
template <class T>
bool is_upper_triangle(const Tensor<T, 2>& x) {
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < i && j < x.extent(1); ++j)
      if (x(i, j) != T(0)) return false;
  return true;
}

/// The error of a call, without its context.
template <class F>
std::string error_text(const F& call) {
  const std::string error = testing::error_of(call);
  return error.substr(0, error.find(" ["));
}

/// Runs a case if ranks are processes, between which ScaLAPACK communicates.
template <class F>
void between_processes(std::initializer_list<int> counts, const F& body) {
  if (testing::Processes::get().launched()) on_ranks(counts, body);
  else testing::skip("ScaLAPACK's ranks are MPI processes");
}

}  // namespace large_matrices
