// The datatypes and operations of the MPI library's reductions.
#pragma once

#include <cleave/comm/mpi/header.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>

namespace cleave::detail {

/// The MPI datatype and operation of a reduction.
struct MpiReduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int parts = 1;  ///< numbers per element

  /// Integers wrap as unsigned; complex numbers are summed as pairs.
  /// @pre library_reduces(type, op)
  static MpiReduction of(DType type, ReduceOp op) {
    const bool order = op == ReduceOp::max || op == ReduceOp::min;
    MpiReduction result;
    switch (type) {
      case DType::int8: result.type = order ? MPI_INT8_T : MPI_UINT8_T; break;
      case DType::uint8: result.type = MPI_UINT8_T; break;
      case DType::int16: result.type = order ? MPI_INT16_T : MPI_UINT16_T; break;
      case DType::uint16: result.type = MPI_UINT16_T; break;
      case DType::int32: result.type = order ? MPI_INT32_T : MPI_UINT32_T; break;
      case DType::uint32: result.type = MPI_UINT32_T; break;
      case DType::int64: result.type = order ? MPI_INT64_T : MPI_UINT64_T; break;
      case DType::uint64: result.type = MPI_UINT64_T; break;
      case DType::float32:
      case DType::complex64: result.type = MPI_FLOAT; break;
      case DType::float64:
      case DType::complex128: result.type = MPI_DOUBLE; break;
      default: break;
    }
    result.parts = is_complex_dtype(type) ? 2 : 1;
    switch (op) {
      case ReduceOp::sum: result.op = MPI_SUM; break;
      case ReduceOp::product: result.op = MPI_PROD; break;
      case ReduceOp::max: result.op = MPI_MAX; break;
      case ReduceOp::min: result.op = MPI_MIN; break;
      case ReduceOp::band: result.op = MPI_BAND; break;
      case ReduceOp::bor: result.op = MPI_BOR; break;
      case ReduceOp::bxor: result.op = MPI_BXOR; break;
      case ReduceOp::avg: break;
    }
    return result;
  }
};

}  // namespace cleave::detail
