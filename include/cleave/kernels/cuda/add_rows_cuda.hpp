// Scatter-add on a GPU: rows are added to the rows of a table that indices select.
//
// Numbers whose sums round are added in the order of their indices' positions, in every run: the
// indices are sorted, and one thread adds all elements that belong to an element of the table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/radix_sort_cuda.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Writes the local row of every index as its key, `rows` if there is none, and its position.
///
/// @param loops   array 0 is the indices, array 1 the positions
/// @param exists  the valid indices, and the range of rows to which the table's `rows` belong
template <class I>
__global__ void row_keys_kernel(const I* indices, Loops<2> loops, std::uint32_t steps,
                                IndexCheck exists, index_t rows, std::uint64_t* keys,
                                std::uint64_t* positions) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const index_t index = index_t(indices[at.offset[0]]), row = index - exists.range.first;
  keys[at.offset[1]] = std::uint64_t(exists(index) && row >= 0 && row < rows ? row : rows);
  positions[at.offset[1]] = std::uint64_t(at.offset[1]);
}

/// The arrays of the loops over sorted positions and over the elements of a row.
enum AddedArray { added_values, added_positions, added_table, added_arrays };

/// The thread at the first position of a row adds the elements at all of them.
///
/// @param values     contiguous rows of `cols` elements
/// @param keys       rows of the table in order, none if >= `rows`
/// @param positions  those of the values, in order for equal rows
template <class T>
__global__ void add_rows_kernel(const T* values, T* table, const std::uint64_t* keys,
                                const std::uint64_t* positions, index_t count, index_t cols,
                                Loops<added_arrays> loops, std::uint32_t steps, index_t rows,
                                index_t row_stride) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const index_t first = at.offset[added_positions];
  const std::uint64_t row = keys[first];
  if (row >= std::uint64_t(rows) || (first > 0 && keys[first - 1] == row)) return;
  using A = accumulator_t<T>;
  const index_t col = at.offset[added_values] - first * cols;
  A sum = A(0);
  for (index_t i = first; i < count && keys[i] == row; ++i)
    sum = kernels::plus(sum, A(values[index_t(positions[i]) * cols + col]));
  T& to = table[at.offset[added_table] + index_t(row) * row_stride];
  to = T(kernels::plus(A(to), sum));
}

}  // namespace cuda::detail

namespace kernels {

/// table[indices[i..] - first, r..] += values[i.., r..], in the order of the current stream; rows
/// that are not local are skipped. The same bits in every run: values of one index are added in the
/// order of their positions, 16-bit floats in float, then to the table.
///
/// @param values   [i.., r..]
/// @param indices  [i..]; an index outside [0, total) is reported by the next wait on the host
/// @param table    [rows, r..]; overlaps neither
/// @return no index, as the indices have not been checked yet
/// @cost   sorts the indices (@see sort_by_keys) by as many bits as the number of rows has; memory
///         of 32 bytes per index, and for a copy of values that are not contiguous; two launches
///         more. Values of one index are added one after the other: the most frequent index takes
///         longest
/// @throws Error if a launch fails, or there is no memory
template <class I, class T>
std::optional<I> scatter_add_rows(On<Cuda> on, const Strided<const T>& values,
                                  const Strided<const I>& indices, const Strided<T>& table,
                                  const RowRange& range) {
  using namespace cuda::detail;
  if (values.extents.product() == 0) return std::nullopt;
  std::shared_ptr<void> memory;
  const Strided<const T> rows = densely(on, values, memory);
  const index_t count = indices.extents.product(), cols = rows.extents.product() / count;
  const Shape line(std::array<index_t, 1>{count}), step(std::array<index_t, 1>{1});
  const Shape positions = row_major_strides(indices.extents);
  const IndexCheck exists(range);
  KeyedNumbers sorted(count);
  in_pieces(LoopNest<2>(indices.extents, {&indices.strides, &positions}),
            [&](const LoopNest<2>& piece) {
              const Loops<2> loops(piece);
              cuda::launch_steps(range.operation, row_keys_kernel<I>, loops.size(), 1, indices.data,
                                 loops, loops.size(), exists, table.extents[0], sorted.keys(),
                                 sorted.numbers());
            });
  sort_by_keys(Cuda{}, range.operation, sorted, 0,
               int(std::bit_width(std::uint64_t(table.extents[0]))));

  Shape extents = line, by_value(std::array<index_t, 1>{cols}), by_position = step,
        by_table(std::array<index_t, 1>{0});
  for (int d = 1; d < table.extents.dims; ++d) {
    extents[extents.dims++] = table.extents[d];
    by_value[by_value.dims++] = rows.strides[indices.extents.dims + d - 1];
    by_position[by_position.dims++] = 0;
    by_table[by_table.dims++] = table.strides[d];
  }
  in_pieces(LoopNest<added_arrays>(extents, {&by_value, &by_position, &by_table}),
            [&](const LoopNest<added_arrays>& piece) {
              const Loops<added_arrays> loops(piece);
              cuda::launch_steps(range.operation, add_rows_kernel<T>, loops.size(), 1, rows.data,
                                 table.data, sorted.keys(), sorted.numbers(), count, cols, loops,
                                 loops.size(), table.extents[0], table.strides[0]);
            });
  return std::nullopt;
}

}  // namespace kernels

}  // namespace cleave::inline v0
