// Class indices as one-hot vectors: rows of zeros with a single one.
#pragma once

#include <algorithm>
#include <optional>

#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

/// out[.., c] = (indices[..] == classes.first + c).
///
/// @param indices  any extents and strides
/// @param columns  columns of `out`, which is row-major and contiguous, with one row per index
/// @return the first index that is not in [0, classes.total), if there is one; its row is zero
template <class I, class T>
std::optional<I> one_hot_rows(On<Host>, const Strided<const I>& indices, index_t columns, T* out,
                              const RowRange& classes) {
  const index_t rows = indices.extents.product();
  std::fill_n(out, rows * columns, T(0));
  std::optional<I> wrong;
  if (rows == 0) return wrong;
  detail::DimLoops loops;
  for (int d = 0; d < indices.extents.dims; ++d)
    loops.push(indices.extents[d], {indices.strides[d]});
  loops.each([&](index_t offset) {
    const I index = indices.data[offset];
    if (!classes.has(index_t(index))) {
      if (!wrong) wrong = index;
    } else if (const index_t at = index_t(index) - classes.first; at >= 0 && at < columns) {
      out[at] = T(1);
    }
    out += columns;
  });
  return wrong;
}

}  // namespace cleave::inline v0::kernels
