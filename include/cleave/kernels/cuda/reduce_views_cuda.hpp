// Elementwise reductions over ranks on a GPU: the arithmetic behind collectives whose operands are
// views in device memory.
//
// Operands are combined in the given order, ((a0 + a1) + a2) + .., element by element: the same
// bits in every run, and the same as on the host, except for products of complex numbers, where a
// GPU contracts multiply-adds. 16-bit types are accumulated in float and rounded once, integers
// wrap, maximum and minimum propagate NaNs, complex numbers are added as pairs.
#pragma once

#include <concepts>
#include <span>

#include <cleave/core/reduce_op.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

/// result[i] = operands[0][i] op operands[1][i] op .., for elements [begin, end) in row-major
/// order, in the order of the current stream. An average divides by the number of operands.
///
/// @pre equal extents and element types, which support the reduction; all views in memory that the
///      current device can read; `result` overlaps no operand, or is the same view as one
/// @cost one launch for contiguous views; for others one per dimension and side that the range
///       cuts, and a contiguous copy of operands if their strides differ
/// @throws Error if a launch fails
template <std::same_as<Cuda> Device>
void reduce_range(Device, ReduceOp op, std::span<const ConstView> operands, const View& result,
                  index_t begin, index_t end);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/kernels/cuda/reduce_views_cuda_body.hpp>
#endif
