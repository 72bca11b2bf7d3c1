// Scatter-add on a GPU: rows are added to the rows of a table that indices select.
//
// Numbers whose sums round are added in the order of their indices' positions, in every run: the
// indices are sorted, and one thread adds all elements that belong to an element of the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/ordered_indices_cuda.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The arrays of the loops over positions in sorted order and over the elements of a row.
enum AddedArray { added_values, added_positions, added_table, added_arrays };

/// The thread at the first position of an index adds the elements at all of them.
///
/// @param values  contiguous rows of `cols` elements
/// @param order   positions of the indices, sorted by index, then by position
/// @param exists  the valid indices, and the range of rows to which the table's `rows` belong
template <class I, class T>
__global__ void add_rows_kernel(const T* values, T* table, const I* indices, const index_t* order,
                                index_t count, index_t cols, Loops<added_arrays> loops,
                                std::uint32_t steps, index_t rows, index_t row_stride,
                                IndexCheck exists) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const index_t first = at.offset[added_positions];
  const I own = indices[order[first]];
  if (first > 0 && indices[order[first - 1]] == own) return;
  const index_t row = index_t(own) - exists.range.first;
  if (!exists(index_t(own)) || row < 0 || row >= rows) return;
  using A = accumulator_t<T>;
  const index_t col = at.offset[added_values] - first * cols;
  A sum = A(0);
  for (index_t i = first; i < count && indices[order[i]] == own; ++i)
    sum = kernels::plus(sum, A(values[order[i] * cols + col]));
  T& to = table[at.offset[added_table] + row * row_stride];
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
/// @cost   sorts the indices (@see ordered_indices), memory for two numbers per index,
///         and copies of values and indices that are not contiguous; then one launch. Values of
///         one index are added one after the other: the most frequent index takes longest
/// @throws Error if a launch fails, or there is no memory
template <class I, class T>
std::optional<I> scatter_add_rows(On<Cuda> on, const Strided<const T>& values,
                                  const Strided<const I>& indices, const Strided<T>& table,
                                  const RowRange& range) {
  using namespace cuda::detail;
  if (values.extents.product() == 0) return std::nullopt;
  std::shared_ptr<void> value_memory, index_memory;
  const Strided<const T> rows = densely(on, values, value_memory);
  const Strided<const I> chosen = densely(on, indices, index_memory);
  const index_t count = chosen.extents.product(), cols = rows.extents.product() / count;
  const Shape line(std::array<index_t, 1>{count}), step(std::array<index_t, 1>{1});
  const auto memory = allocate_bytes(Cuda{}, std::size_t(count) * sizeof(index_t));
  auto* const order = static_cast<index_t*>(memory.get());
  ordered_indices(on, Strided<const I>{chosen.data, line, step}, 0, false,
                  Strided<index_t>{order, line, step});

  Shape extents = line, by_value(std::array<index_t, 1>{cols}), by_position = step,
        by_table(std::array<index_t, 1>{0});
  for (int d = 1; d < table.extents.dims; ++d) {
    extents[extents.dims++] = table.extents[d];
    by_value[by_value.dims++] = rows.strides[indices.extents.dims + d - 1];
    by_position[by_position.dims++] = 0;
    by_table[by_table.dims++] = table.strides[d];
  }
  const IndexCheck exists(range);
  in_pieces(LoopNest<added_arrays>(extents, {&by_value, &by_position, &by_table}),
            [&](const LoopNest<added_arrays>& piece) {
              const Loops<added_arrays> loops(piece);
              const std::uint32_t steps = loops.size();
              cuda::launch_steps(range.operation, add_rows_kernel<I, T>, steps, 1, rows.data,
                                 table.data, chosen.data, order, count, cols, loops, steps,
                                 table.extents[0], table.strides[0], exists);
            });
  return std::nullopt;
}

}  // namespace kernels

}  // namespace cleave::inline v0
