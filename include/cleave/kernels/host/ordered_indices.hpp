// The indices of the first elements in sorted order along a dimension.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <cleave/kernels/element_order.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

/// Writes the indices of the largest or smallest elements of every line along `dim`, in order, as
/// many as `out` has. Among equal elements the lower index comes first; NaNs count as largest.
///
/// @param out  has the extents of x, except along `dim`, where its extent is at most that of x
template <class T>
void ordered_indices(On<Host>, const Strided<const T>& x, int dim, bool descending,
                     const Strided<index_t>& out) {
  if (out.extents.product() == 0) return;
  const index_t n = x.extents[dim], count = out.extents[dim], step = x.strides[dim];
  std::vector<index_t> order(static_cast<std::size_t>(n));
  const auto visit = [&](index_t from_offset, index_t to_offset) {
    const T* const from = x.data + from_offset;
    index_t* const to = out.data + to_offset;
    std::iota(order.begin(), order.end(), index_t{0});
    std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(count), order.end(),
                      ElementOrder<T>{from, step, descending});
    for (index_t i = 0; i < count; ++i) to[i * out.strides[dim]] = order[std::size_t(i)];
  };
  detail::loops_besides(1u << dim, x.extents, x.strides, out.strides).each(visit);
}

}  // namespace cleave::inline v0::kernels
