// Gather, scatter-add and put: rows of a table, selected by index, are read, added to or replaced.
#pragma once

#include <optional>

#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// Calls visit(row of values, row of table) for every index; rows of `values` are in index order.
/// @param visit  gets a null row of the table for an index whose row is not local
/// @return the first index that is not in [0, total)
template <class I, class V, class T, class Visit>
std::optional<I> for_indexed_rows(const Strided<const I>& indices, const Strided<V>& values,
                                  const Strided<T>& table, const RowRange& range,
                                  const Visit& visit) {
  std::optional<I> wrong;
  const int last = indices.extents.dims - 1;  // the inner loop; a single index has none
  const index_t count = last < 0 ? 1 : indices.extents[last];
  const index_t step = last < 0 ? 0 : indices.strides[last];
  const index_t next = last < 0 ? 0 : values.strides[last];
  Shape outer = indices.extents;
  outer.dims = last < 0 ? 0 : last;
  if (indices.extents.product() == 0) return wrong;
  Shape at = Shape::filled(outer.dims, 0);
  do {
    index_t from = cleave::detail::offset_of(at, indices.strides);
    index_t to = cleave::detail::offset_of(at, values.strides);
    for (index_t i = 0; i < count; ++i, from += step, to += next) {
      const I index = indices.data[from];
      if (!range.has(index_t(index)) && !wrong) wrong = index;
      const index_t row = index_t(index) - range.first;
      const bool found = row >= 0 && row < table.extents[0];
      visit(place_behind(values.data, to),
            found ? place_behind(table.data, row * table.strides[0]) : nullptr);
    }
  } while (next_index(outer, at));
  return wrong;
}

/// The dimensions after the first `skipped`.
constexpr Shape behind(const Shape& shape, int skipped) {
  Shape rest;
  for (int d = skipped; d < shape.dims; ++d) rest[rest.dims++] = shape[d];
  return rest;
}

/// to[0..n) += from[0..n). Prefetches the rows that follow, which hardware does up to the end of a
/// page only.
template <class T>
void add_contiguous(const T* __restrict__ from, T* __restrict__ to, index_t n) {
  constexpr index_t line = 64 / index_t(sizeof(T)), ahead = 64 * line;
  index_t k = 0;
  for (; k + line <= n; k += line) {
    __builtin_prefetch(from + k + ahead);
    CLEAVE_UNROLL
    for (index_t j = k; j < k + line; ++j) to[j] = plus(to[j], from[j]);
  }
  for (; k < n; ++k) to[k] = plus(to[k], from[k]);
}

/// to[r..] += from[r..]
template <class T>
void add_row(const T* from, const Shape& from_strides, T* to, const Shape& to_strides,
             const Shape& extents, int d = 0) {
  if (d == extents.dims) {
    *to = plus(*to, *from);
  } else if (d + 1 == extents.dims && from_strides[d] == 1 && to_strides[d] == 1) {
    add_contiguous(from, to, extents[d]);
  } else {
    for (index_t k = 0; k < extents[d]; ++k)
      add_row(from + k * from_strides[d], from_strides, to + k * to_strides[d], to_strides, extents,
              d + 1);
  }
}

}  // namespace detail

/// out[i.., r..] = table[indices[i..] - first, r..], zeros for rows that are not local.
///
/// @param table    [rows, r..]
/// @param indices  [i..], in [0, total)
/// @param out      [i.., r..]; overlaps neither
/// @return the first index outside [0, total), if there is one
template <class I, class T>
std::optional<I> gather_rows(On<Host>, const Strided<const T>& table,
                             const Strided<const I>& indices, const Strided<T>& out,
                             const RowRange& range) {
  const Shape extents = detail::behind(table.extents, 1);
  const Shape from = detail::behind(table.strides, 1);
  const Shape to = detail::behind(out.strides, indices.extents.dims);
  if (extents.product() == 1)
    return detail::for_indexed_rows(indices, out, table, range, [](T* row, const T* found) {
      *row = found != nullptr ? *found : T(0);
    });
  return detail::for_indexed_rows(indices, out, table, range, [&](T* row, const T* found) {
    const View view{row, dtype_of<T>(), extents, to};
    if (found != nullptr) strided_copy(ConstView{found, dtype_of<T>(), extents, from}, view);
    else strided_fill(Host{}, view, T(0));
  });
}

/// table[indices[i..] - first, r..] += values[i.., r..], in the order of the indices; rows that are
/// not local are skipped.
///
/// @param values   [i.., r..]
/// @param indices  [i..], in [0, total)
/// @param table    [rows, r..]; overlaps neither
/// @return the first index outside [0, total), if there is one
template <class I, class T>
std::optional<I> scatter_add_rows(On<Host>, const Strided<const T>& values,
                                  const Strided<const I>& indices, const Strided<T>& table,
                                  const RowRange& range) {
  const Shape extents = detail::behind(table.extents, 1);
  const Shape from = detail::behind(values.strides, indices.extents.dims);
  const Shape to = detail::behind(table.strides, 1);
  if (extents.product() == 1)
    return detail::for_indexed_rows(indices, values, table, range, [](const T* row, T* found) {
      if (found != nullptr) *found = plus(*found, *row);
    });
  return detail::for_indexed_rows(indices, values, table, range, [&](const T* row, T* found) {
    if (found != nullptr) detail::add_row(row, from, found, to, extents);
  });
}

/// table[indices[i..] - first, r..] = values[i.., r..], likewise; the last value of a row remains.
template <class I, class T>
std::optional<I> put_rows(On<Host>, const Strided<const T>& values, const Strided<const I>& indices,
                          const Strided<T>& table, const RowRange& range) {
  const Shape extents = detail::behind(table.extents, 1);
  const Shape from = detail::behind(values.strides, indices.extents.dims);
  const Shape to = detail::behind(table.strides, 1);
  return detail::for_indexed_rows(indices, values, table, range, [&](const T* row, T* found) {
    if (found != nullptr)
      strided_copy(ConstView{row, dtype_of<T>(), extents, from},
                   View{found, dtype_of<T>(), extents, to});
  });
}

}  // namespace cleave::inline v0::kernels
