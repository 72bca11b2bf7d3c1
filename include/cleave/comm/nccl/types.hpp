// NCCL's element types, reductions and error texts.
#pragma once

#include <string>

#include <cleave/core/cuda/fp16.hpp>
// NCCL's header comes after that one.
#include <nccl.h>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error "cleave makes calls that NCCL has from 2.28 on"
#endif

namespace cleave::inline v0::detail {

/// An element as NCCL transfers it: complex numbers as two real ones, bools and integers of 16 bits
/// and floats of 8 bits as bytes.
struct NcclType {
  ncclDataType_t type = ncclUint8;
  std::size_t numbers = 1;
};

constexpr NcclType nccl_type(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::float8_e4m3:
    case DType::float8_e5m2:
    case DType::uint8: return {ncclUint8, 1};
    case DType::int8: return {ncclInt8, 1};
    case DType::int16:
    case DType::uint16: return {ncclUint8, 2};
    case DType::int32: return {ncclInt32, 1};
    case DType::uint32: return {ncclUint32, 1};
    case DType::int64: return {ncclInt64, 1};
    case DType::uint64: return {ncclUint64, 1};
    case DType::float16: return {ncclFloat16, 1};
    case DType::bfloat16: return {ncclBfloat16, 1};
    case DType::float32: return {ncclFloat32, 1};
    case DType::float64: return {ncclFloat64, 1};
    case DType::complex64: return {ncclFloat32, 2};
    case DType::complex128: return {ncclFloat64, 2};
  }
  return {};
}

/// Whether NCCL can reduce elements of a type, as numbers or as pairs of numbers.
constexpr bool nccl_reduces(DType type, ReduceOp op) {
  const bool pairs = type == DType::complex64 || type == DType::complex128;
  const bool bytes = type == DType::int16 || type == DType::uint16;
  return !bytes && !is_bitwise(op) && !(pairs && op == ReduceOp::product);
}

/// Bools: sum and max are `or`, product and min are `and`, of bytes that are 0 or 1.
constexpr ncclRedOp_t nccl_op(DType type, ReduceOp op) {
  const bool bools = type == DType::boolean;
  switch (op) {
    case ReduceOp::sum: return bools ? ncclMax : ncclSum;
    case ReduceOp::avg: return ncclAvg;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::product: return bools ? ncclMin : ncclProd;
    default: return ncclSum;  // not by NCCL
  }
}

/// ncclSuccess, or the asynchronous error of a communicator.
inline ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t status = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &status);
  return asked == ncclSuccess ? status : asked;
}

/// The text of an error that an NCCL call returns. Communicators that do not block are refused.
inline std::string nccl_error_string(ncclResult_t status, const char* function, ncclComm_t comm) {
  const std::string call = std::string("NCCL: ") + function + ": ";
  if (status == ncclInProgress)
    return call +
           "the communicator must be blocking (ncclConfig_t::blocking = 1, "
           "NCCL_COMM_BLOCKING unset)";
  std::string text = call + ncclGetErrorString(status);
  const char* more = ncclGetLastError(comm);
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  return text;
}

}  // namespace cleave::inline v0::detail
