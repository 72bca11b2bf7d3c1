// Functions of whole rows along a dimension, computed while a row is in cache: rows that are not
// contiguous are packed into a buffer, several at a time, and written back from there.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/kernels/host/vector_math.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::kernels {

/// Calls f(in, out, n) for every row of x along dimension d and of y, which has the same extents.
/// `in` and `out` are contiguous and may be equal.
template <class T, class F>
void each_whole_row(const Strided<const T>& x, const Strided<T>& y, int d, const F& f) {
  const index_t n = x.extents[d];
  if (x.extents.product() == 0) return;
  const bool are_dense = n == 1 || (x.strides[d] == 1 && y.strides[d] == 1);
  int along = -1;  // the dimension whose rows are packed together
  for (int e = 0; !are_dense && e < x.extents.dims; ++e)
    if (e != d) along = e;
  const index_t count = along < 0 ? 1 : x.extents[along], most = std::min<index_t>(count, 16);
  const auto step = [along](const Shape& strides) { return along < 0 ? 0 : strides[along]; };
  std::vector<T> buffer(are_dense ? 0 : std::size_t(most * n));
  const auto visit = [&](index_t from, index_t to) {
    if (are_dense) return f(x.data + from, y.data + to, n);
    for (index_t first = 0; first < count; first += most) {
      const Shape extents(std::array<index_t, 2>{std::min(most, count - first), n});
      const auto strides = [&](const Shape& of) {
        return Shape(std::array<index_t, 2>{step(of), of[d]});
      };
      const View packed = View::dense(buffer.data(), dtype_of<T>(), extents);
      strided_copy(
          {x.data + from + first * step(x.strides), dtype_of<T>(), extents, strides(x.strides)},
          packed);
      for (index_t r = 0; r < extents[0]; ++r) f(buffer.data() + r * n, buffer.data() + r * n, n);
      strided_copy(
          {buffer.data(), dtype_of<T>(), extents, packed.strides},
          {y.data + to + first * step(y.strides), dtype_of<T>(), extents, strides(y.strides)});
    }
  };
  const unsigned rows = 1u << d | (along < 0 ? 0u : 1u << along);
  detail::loops_besides(rows, x.extents, x.strides, y.strides).each(visit);
}

namespace detail {

template <class T>
void exp_row(const T* x, T* y, index_t n) {
  if constexpr (has_row_functions<T>) apply_to_row(RowFunctionId::exp, x, y, n);
  else
    for (index_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

/// log(x), computed as in rows.
template <class T>
T log_of(T x) {
  if constexpr (has_row_functions<T>) apply_to_row(RowFunctionId::log, &x, &x, 1);
  else x = std::log(x);
  return x;
}

/// The sum of exp(x).
template <class T>
T sum_of_exp(const T* x, index_t n) {
  constexpr index_t block = 1024;
  T part[block], sum = T(0);
  for (index_t i = 0; i < n; i += block) {
    const index_t count = std::min(block, n - i);
    exp_row(x + i, part, count);
    sum += reduce_row<Sum, T>(part, count, 1);
  }
  return sum;
}

}  // namespace detail

/// y = exp(x) / sum(exp(x)), shifted by the largest element so that nothing overflows; or log(y).
/// y may be x.
template <bool Logarithm, class T>
void softmax_row(const T* x, T* y, index_t n) {
  const T largest = detail::reduce_row<Max, T>(x, n, 1);
  for (index_t i = 0; i < n; ++i) y[i] = x[i] - largest;
  if constexpr (Logarithm) {
    const T total = detail::log_of(detail::sum_of_exp(y, n));
    for (index_t i = 0; i < n; ++i) y[i] -= total;
  } else {
    detail::exp_row(y, y, n);
    const T total = detail::reduce_row<Sum, T>(y, n, 1);
    for (index_t i = 0; i < n; ++i) y[i] /= total;
  }
}

/// y = softmax(x) along dimension d, or its logarithm.
template <bool Logarithm, class T>
void softmax_rows(On<Host>, std::bool_constant<Logarithm>, const Strided<const T>& x, int d,
                  const Strided<T>& y) {
  each_whole_row(x, y, d, &softmax_row<Logarithm, T>);
}

}  // namespace cleave::inline v0::kernels
