// The indices and values of the extreme elements along a dimension (argmax, argmin).
//
// Among equal elements the lowest index wins, whatever the strides. A NaN counts as more extreme
// than any number, so that the value found is the one that `max` and `min` return.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/first_extreme.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// The largest number of columns that are reduced together.
inline constexpr index_t arg_width = 256;

/// 0 as a signed integer of `Bytes` bytes.
template <std::size_t Bytes>
constexpr auto zero_of_bytes() {
  if constexpr (Bytes == 1) return std::int8_t{};
  else if constexpr (Bytes == 2) return std::int16_t{};
  else if constexpr (Bytes == 4) return std::int32_t{};
  else if constexpr (Bytes == 8) return std::int64_t{};
}

/// The start of the first block of a contiguous row that contains `value`; if no block does, the
/// start of the remainder, which is shorter than a block.
template <class T>
index_t first_block_with(const T& value, const T* row, index_t n) {
  using Mask = decltype(zero_of_bytes<sizeof(T)>());
  constexpr index_t block = 64;
  for (index_t i = 0; i + block <= n; i += block) {
    Mask any = 0;
    for (index_t j = 0; j < block; ++j) any |= row[i + j] == value ? Mask(-1) : Mask(0);
    if (any != 0) return i;
  }
  return n / block * block;
}

/// The first extreme element of a row. Long rows are searched for its value, then for its index;
/// short rows for both at once, without branches that would be mispredicted.
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
  if (is_nan(best)) {
    while (!is_nan(row[i * step])) ++i;
  } else {
    if (step == 1) i = first_block_with(best, row, n);
    while (!(row[i * step] == best)) ++i;
  }
  return i;
}

/// The first extreme elements of columns, in blocks of rows: within a block, row indices are
/// integers as wide as the elements, so that a vector holds equally many of both.
template <class Op, class T>
void arg_reduce_columns(const T* from, index_t n, index_t step, index_t columns,
                        index_t column_stride, T* best, index_t* at) {
  using Place = decltype(zero_of_bytes<sizeof(T)>());
  constexpr index_t block = 64;
  T part[arg_width];
  Place place[arg_width];
  for (index_t first = 0; first < n; first += block, from += block * step) {
    const index_t rows = n - first < block ? n - first : block;
    const auto take = [&](index_t stride) {
      for (index_t j = 0; j < columns; ++j) part[j] = from[j * stride], place[j] = 0;
      for (index_t i = 1; i < rows; ++i) {
        const T* const row = from + i * step;
        for (index_t j = 0; j < columns; ++j) {
          const T value = row[j * stride];
          const bool better = is_better<Op>(value, part[j]);
          part[j] = better ? value : part[j];
          place[j] = better ? Place(i) : place[j];
        }
      }
    };
    if (column_stride == 1) take(1);
    else take(column_stride);
    for (index_t j = 0; j < columns; ++j) {
      if (first > 0 && !is_better<Op>(part[j], best[j])) continue;
      best[j] = part[j];
      at[j] = first + index_t(place[j]);
    }
  }
}

}  // namespace detail

/// Finds the extreme element of dimension `dim` for every index of the other dimensions.
///
/// @tparam Op      Max or Min
/// @param first    the index of the dimension's first element
/// @param values   the remaining dimensions in order, row-major and contiguous, or null; identity
///                 elements if the dimension is empty
/// @param indices  likewise, not null; `no_index` if the dimension is empty
template <class Op, class T>
void arg_reduce_dim(On<Host>, const Strided<const T>& in, int dim, index_t first, T* values,
                    index_t* indices) {
  const index_t n = in.extents[dim], step = in.strides[dim];
  detail::ReduceLoops loops(in.extents, in.strides, 1u << dim);
  const index_t results = product_over(in.extents, ~(1u << dim));
  if (results == 0) return;
  if (n == 0) {
    for (index_t i = 0; i < results; ++i) {
      indices[i] = no_index;
      if (values != nullptr) values[i] = Fold<Op>::template identity<T>();
    }
    return;
  }

  if (loops.along()) {
    const auto take = [&](const T& best, index_t at) {
      *indices++ = first + at;
      if (values != nullptr) *values++ = best;
    };
    detail::each_row<Op, T>(in.data, loops.kept, n, step, take, [&](const T* row) {
      T best;
      const index_t at = detail::arg_reduce_row<Op>(row, n, step, best);
      take(best, at);
    });
    return;
  }
  const auto row = loops.kept.pop();
  T best[detail::arg_width];
  loops.kept.each([&](index_t start) {
    for (index_t j0 = 0; j0 < row.extent; j0 += detail::arg_width) {
      const index_t m = std::min(detail::arg_width, row.extent - j0);
      detail::arg_reduce_columns<Op>(in.data + start + j0 * row.stride, n, step, m, row.stride,
                                     best, indices);
      for (index_t j = 0; j < m; ++j) *indices++ += first;
      if (values != nullptr) values = std::copy_n(best, m, values);
    }
  });
}

}  // namespace cleave::inline v0::kernels
