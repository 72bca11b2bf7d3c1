// Rows of a table by their indices: read (gather) and written (scatter).
#pragma once

#include <optional>

#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::kernels {

namespace detail {

/// Calls visit(row, table row) for every index, where rows of `values` follow the indices' order.
/// @param visit  is given null for an index that is not in [0, rows)
/// @return the first such index
template <class I, class V, class T, class Visit>
std::optional<I> for_indexed_rows(const Strided<const I>& indices, const Strided<V>& values,
                                  const Strided<T>& table, const Visit& visit) {
  std::optional<I> wrong;
  Shape at = Shape::filled(indices.extents.dims, 0);
  const index_t count = indices.extents.product();
  for (index_t i = 0; i < count; ++i) {
    index_t from = 0, to = 0;
    for (int d = 0; d < at.dims; ++d) {
      from += at[d] * indices.strides[d];
      to += at[d] * values.strides[d];
    }
    const I index = indices.data[from];
    const bool found = index_t(index) >= 0 && index_t(index) < table.extents[0];
    if (!found && !wrong) wrong = index;
    visit(values.data + to, found ? table.data + index_t(index) * table.strides[0] : nullptr);
    for (int d = at.dims - 1; d >= 0 && ++at[d] == indices.extents[d]; --d) at[d] = 0;
  }
  return wrong;
}

/// The dimensions behind the first `skipped`.
constexpr Shape behind(const Shape& shape, int skipped) {
  Shape rest;
  for (int d = skipped; d < shape.dims; ++d) rest[rest.dims++] = shape[d];
  return rest;
}

}  // namespace detail

/// out[i.., r..] = table[indices[i..], r..].
///
/// @param table    [rows, r..]
/// @param indices  [i..], in [0, rows)
/// @param out      [i.., r..]; overlaps neither
/// @return the first index that is none of a row, if there is one; what it stands for is zeros
template <class I, class T>
std::optional<I> gather_rows(On<Host>, const Strided<const T>& table,
                             const Strided<const I>& indices, const Strided<T>& out) {
  const Shape extents = detail::behind(table.extents, 1);
  const Shape from = detail::behind(table.strides, 1);
  const Shape to = detail::behind(out.strides, indices.extents.dims);
  return detail::for_indexed_rows(indices, out, table, [&](T* row, const T* found) {
    const View view{row, dtype_of<T>(), extents, to};
    if (found != nullptr) strided_copy(ConstView{found, dtype_of<T>(), extents, from}, view);
    else strided_fill(Host{}, view, T(0));
  });
}

/// table[indices[i..], r..] = values[i.., r..]. Where indices repeat, one of their rows remains.
///
/// @param values   [i.., r..]
/// @param indices  [i..], in [0, rows)
/// @param table    [rows, r..]; overlaps neither. Rows without an index stay as they are
/// @return the first index that is none of a row, if there is one; what it stands for is left out
template <class I, class T>
std::optional<I> scatter_rows(On<Host>, const Strided<const T>& values,
                              const Strided<const I>& indices, const Strided<T>& table) {
  const Shape extents = detail::behind(table.extents, 1);
  const Shape from = detail::behind(values.strides, indices.extents.dims);
  const Shape to = detail::behind(table.strides, 1);
  return detail::for_indexed_rows(indices, values, table, [&](const T* row, T* found) {
    if (found != nullptr)
      strided_copy(ConstView{row, dtype_of<T>(), extents, from},
                   View{found, dtype_of<T>(), extents, to});
  });
}

}  // namespace cleave::kernels
