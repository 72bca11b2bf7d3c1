// Where the extreme elements of a dimension are, and what they are.
//
// Among equals the lowest index wins, whatever the strides. A NaN counts as more extreme than any
// number, so that it is found as `max` and `min` would return it.
#pragma once

#include <cleave/kernels/arithmetic.hpp>
#include <cleave/kernels/candidate.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::kernels {

namespace detail {

/// The first extreme element of a row: its value first, then where it is. In a short row both at
/// once, without a branch that would be guessed wrongly.
template <class Op, class T>
index_t arg_reduce_row(const T* row, index_t n, index_t step, T& best) {
  constexpr index_t brief = 32;
  index_t i = 0;
  if (n < brief) {
    best = row[0];
    index_t at = 0;
    bool is_number = !is_nan(best);
    for (i = 1; i < n; ++i) {
      const T value = row[i * step];
      const bool better = std::is_same_v<Op, Max> ? best < value : value < best;
      best = better ? value : best;
      at ^= (at ^ i) & -index_t(better);
      is_number &= !is_nan(value);
    }
    if (is_number) return at;
    i = 0;
  }
  best = T(reduce_row<Op, T>(row, n, step));
  if (is_nan(best))
    while (!is_nan(row[i * step])) ++i;
  else
    while (!(row[i * step] == best)) ++i;
  return i;
}

}  // namespace detail

/// Finds the extreme element of dimension `dim` for every index of the other dimensions.
///
/// @tparam Op      Max or Min
/// @param first    the index of the dimension's first element
/// @param values   the remaining dimensions in their order, row-major without gaps, or null
/// @param indices  likewise; where the dimension is empty: identity element and `no_index`
template <class Op, class T>
void arg_reduce_dim(On<Host>, const Strided<const T>& in, int dim, index_t first, T* values,
                    index_t* indices) {
  const index_t n = in.extents[dim], step = in.strides[dim];
  detail::ReduceLoops loops(in.extents, in.strides, 1u << dim);
  index_t results = 1;
  for (int d = 0; d < in.extents.dims; ++d)
    if (d != dim) results *= in.extents[d];
  if (results == 0) return;
  if (n == 0) {
    for (index_t i = 0; i < results; ++i) {
      indices[i] = no_index;
      if (values != nullptr) values[i] = Fold<Op>::template identity<T>();
    }
    return;
  }

  if (loops.along()) {
    loops.kept.each([&](index_t start) {
      T best;
      *indices++ = first + detail::arg_reduce_row<Op>(in.data + start, n, step, best);
      if (values != nullptr) *values++ = best;
    });
    return;
  }
  constexpr index_t width = 256;
  const auto row = loops.kept.pop();
  T best[width];
  index_t at[width];
  loops.kept.each([&](index_t start) {
    for (index_t j0 = 0; j0 < row.extent; j0 += width) {
      const index_t m = row.extent - j0 < width ? row.extent - j0 : width;
      const T* from = in.data + start + j0 * row.stride;
      for (index_t j = 0; j < m; ++j) best[j] = from[j * row.stride], at[j] = first;
      for (index_t i = 1; i < n; ++i) {
        from += step;
        for (index_t j = 0; j < m; ++j) {
          const T value = from[j * row.stride];
          const bool better = is_better<Op>(value, best[j]);
          best[j] = better ? value : best[j];
          at[j] = better ? first + i : at[j];
        }
      }
      for (index_t j = 0; j < m; ++j) *indices++ = at[j];
      if (values != nullptr)
        for (index_t j = 0; j < m; ++j) *values++ = best[j];
    }
  });
}

}  // namespace cleave::kernels
