// Rows of zeros with a single one: class indices as vectors.
#pragma once

#include <algorithm>
#include <optional>

#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::kernels {

/// out[.., c] = (indices[..] == first + c).
///
/// @param indices  any extents and strides
/// @param first    the class of column 0
/// @param columns  of `out`, which is row-major without gaps: one row per index
/// @param classes  indices lie in [0, classes)
/// @return the first index that does not, if there is one; its row is zero
template <class I, class T>
std::optional<I> one_hot_rows(On<Host>, const Strided<const I>& indices, index_t first,
                              index_t columns, index_t classes, T* out) {
  const index_t rows = indices.extents.product();
  std::fill_n(out, rows * columns, T(0));
  std::optional<I> wrong;
  if (rows == 0) return wrong;
  detail::DimLoops loops;
  for (int d = 0; d < indices.extents.dims; ++d) loops.push(indices.extents[d], indices.strides[d]);
  loops.each([&](index_t offset) {
    const I index = indices.data[offset];
    const index_t at = index_t(index);
    if (at < 0 || at >= classes) {
      if (!wrong) wrong = index;
    } else if (at >= first && at < first + columns) {
      out[at - first] = T(1);
    }
    out += columns;
  });
  return wrong;
}

}  // namespace cleave::kernels
