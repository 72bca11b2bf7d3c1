// Which reductions may be left to the MPI library.
#pragma once

#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>

namespace cleave::detail {

/// Whether MPI has an equivalent: it has no 16-bit floats and bools, no averages, no products of
/// complex numbers, and no floating-point maximum or minimum that propagates NaNs; and Open MPI 4.1
/// saturates sums of 8- and 16-bit integers instead of wrapping (ompi/mca/op/avx).
inline bool library_reduces(DType type, ReduceOp op) {
  if (op == ReduceOp::avg) return false;
  if (is_integer_dtype(type)) return op != ReduceOp::sum || size_of(type) > 2;
  if (is_complex_dtype(type)) return op == ReduceOp::sum;
  return (type == DType::float32 || type == DType::float64) &&
         (op == ReduceOp::sum || op == ReduceOp::product);
}

/// Whether a reduction gives the same result, or one with the usual rounding errors, in any order:
/// partial results may be rounded.
/// @param reproducible  whether sums are added in rank order, so that they do not depend on the run
inline bool reduces_in_any_order(DType type, ReduceOp op, bool reproducible) {
  if (op == ReduceOp::avg) return false;
  const bool rounds = !is_integer_dtype(type) && type != DType::boolean &&
                      (op == ReduceOp::sum || op == ReduceOp::product);
  const bool is_short = type == DType::float16 || type == DType::bfloat16;
  return !rounds || !(is_short || reproducible);
}

}  // namespace cleave::detail
