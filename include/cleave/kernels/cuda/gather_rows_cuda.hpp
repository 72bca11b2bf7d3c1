// Gather and put on a GPU: rows of a table, selected by index, are read or replaced.
#pragma once

#include <cstdint>
#include <optional>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The arrays of the loops: values [i.., r..], rows of the table (strides of 0 along i) and indices
/// (strides of 0 along r).
enum GatheredArray { row_values, row_table, row_indices, row_arrays };

enum class RowMove { gather, put };

/// @param cols    elements of the innermost loop, whose steps are runs
/// @param packed  whether full runs are packs, both of values and of the table
/// @param exists  the valid indices, and the range of rows to which the table's `rows` belong
template <RowMove Move, class I, class T>
__global__ void rows_kernel(T* values, T* table, const I* indices, Loops<row_arrays> loops,
                            std::uint32_t steps, index_t cols, bool packed, index_t rows,
                            index_t row_stride, IndexCheck exists) {
  constexpr int width = pack_width<T>();
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const auto stride = [&](GatheredArray k) { return loops.strides[k][0] / width; };
  const auto move = [&](index_t k, index_t count) {
    const auto index = index_t(indices[at.offset[row_indices] + k * stride(row_indices)]);
    const index_t first = exists.range.first;
    const bool found = exists(index) && index >= first && index < first + rows;
    const index_t here = found ? index - first : 0;
    const Run<width> value_run{packed, stride(row_values), count};
    const Run<width> table_run{packed, stride(row_table), count};
    T* value = values + at.offset[row_values] + k * stride(row_values);
    T* row = table + at.offset[row_table] + k * stride(row_table) + here * row_stride;
    if constexpr (Move == RowMove::put) {
      if (found) table_run.store(row, value_run.load(value));
    } else {
      value_run.store(value, found ? table_run.load(row) : Pack<T, width>{});
    }
  };
  const index_t left = cols - index_t(at.inner) * width;
  if (stride(row_indices) == 0) return move(0, left);
  for (index_t k = 0; k < width && k < left; ++k) move(k, 1);  // each element has its own index
}

/// @param values  [i.., r..]
template <RowMove Move, class I, class T>
std::optional<I> move_rows(T* values, const Shape& extents, const Shape& value_strides,
                           const kernels::Strided<const I>& indices, T* table,
                           const Shape& table_extents, const Shape& table_strides,
                           const kernels::RowRange& range) {
  if (extents.product() == 0) return std::nullopt;
  const int index_dims = indices.extents.dims;
  Shape by_table = Shape::filled(extents.dims, 0), by_index = by_table;
  for (int d = 0; d < index_dims; ++d) by_index[d] = indices.strides[d];
  for (int d = index_dims; d < extents.dims; ++d) by_table[d] = table_strides[d - index_dims + 1];
  const LoopNest<row_arrays> nest(extents, {&value_strides, &by_table, &by_index});

  constexpr int width = pack_width<T>();
  const bool packed = nest.rows_are_packs(row_values, width) && aligned_for<width>(values) &&
                      nest.rows_are_packs(row_table, width) && aligned_for<width>(table) &&
                      table_strides[0] % width == 0;
  const IndexCheck exists(range);
  in_pieces(nest, [&](const LoopNest<row_arrays>& piece) {
    const Loops<row_arrays> loops(piece, width);
    const std::uint32_t steps = loops.size();
    launch_steps(range.operation, rows_kernel<Move, I, T>, steps, 1, values, table, indices.data,
                 loops, steps, piece.extents[piece.inner()], packed, table_extents[0],
                 table_strides[0], exists);
  });
  return std::nullopt;
}

/// Elements as bytes, so that types of equal size and alignment share kernels.
template <class T>
typename BytesOf<std::remove_const_t<T>>::type* as_bytes(T* data) {
  using Bytes = typename BytesOf<std::remove_const_t<T>>::type;
  return reinterpret_cast<Bytes*>(const_cast<std::remove_const_t<T>*>(data));
}

}  // namespace cuda::detail

namespace kernels {

/// out[i.., r..] = table[indices[i..] - first, r..], zeros for rows that are not local, in the
/// order of the current stream.
///
/// @param table    [rows, r..]
/// @param indices  [i..]; an index outside [0, total) is reported by the next wait on the host
/// @param out      [i.., r..]; overlaps neither
/// @return no index, as the indices have not been checked yet
/// @cost   one launch
/// @throws Error if the launch fails
template <class I, class T>
std::optional<I> gather_rows(On<Cuda>, const Strided<const T>& table,
                             const Strided<const I>& indices, const Strided<T>& out,
                             const RowRange& range) {
  return cuda::detail::move_rows<cuda::detail::RowMove::gather, I>(
      cuda::detail::as_bytes(out.data), out.extents, out.strides, indices,
      cuda::detail::as_bytes(table.data), table.extents, table.strides, range);
}

/// table[indices[i..] - first, r..] = values[i.., r..], likewise; rows that are not local are
/// skipped. If indices repeat, any one of the values remains, possibly another one for each
/// element.
template <class I, class T>
std::optional<I> put_rows(On<Cuda>, const Strided<const T>& values, const Strided<const I>& indices,
                          const Strided<T>& table, const RowRange& range) {
  return cuda::detail::move_rows<cuda::detail::RowMove::put, I>(
      cuda::detail::as_bytes(values.data), values.extents, values.strides, indices,
      cuda::detail::as_bytes(table.data), table.extents, table.strides, range);
}

}  // namespace kernels

}  // namespace cleave::inline v0
