// Which reductions an element type supports.
#pragma once

#include <string>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>

namespace cleave::inline v0::detail {

constexpr bool is_complex_dtype(DType type) {
  return type == DType::complex64 || type == DType::complex128;
}

constexpr bool is_float8_dtype(DType type) {
  return type == DType::float8_e4m3 || type == DType::float8_e5m2;
}

constexpr bool is_integer_dtype(DType type) { return type >= DType::int8 && type <= DType::uint64; }

/// Why elements of that type do not support a reduction; null: they do.
constexpr const char* why_undefined(DType type, ReduceOp op) {
  if (is_float8_dtype(type)) return "floats of 8 bits are for storage; dequantize or cast them";
  if (op == ReduceOp::avg && is_integer_dtype(type))
    return "an average requires a floating-point element type";
  if (op == ReduceOp::avg && type == DType::boolean) return "an average requires numbers";
  if ((op == ReduceOp::max || op == ReduceOp::min) && is_complex_dtype(type))
    return "complex numbers have no order";
  if (is_bitwise(op) && !is_integer_dtype(type) && type != DType::boolean)
    return "reductions of bits require integers or bools";
  return nullptr;
}

/// @throws Error if elements of that type do not support the reduction
inline void require_reduction(const char* operation, DType type, ReduceOp op) {
  if (const char* const reason = why_undefined(type, op))
    throw Error(operation,
                std::string(name_of(op)) + " of " + name_of(type) + " is not defined: " + reason);
}

}  // namespace cleave::inline v0::detail
