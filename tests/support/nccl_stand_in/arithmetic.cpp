#include "arithmetic.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nccl_stand_in {
namespace {

/// Signed integers wrap around.
template <class Number>
Number combine(ncclRedOp_t op, Number a, Number b) {
  using Wide = std::conditional_t<std::is_integral_v<Number>, std::uint64_t, Number>;
  switch (op) {
    case ncclProd: return Number(Wide(a) * Wide(b));
    case ncclMax: return a < b ? b : a;
    case ncclMin: return b < a ? b : a;
    default: return Number(Wide(a) + Wide(b));
  }
}

/// Elements of type T, computed as numbers of another type if T is small.
template <class T>
void reduce_as(ncclRedOp_t op, std::span<const std::byte* const> operands, std::size_t count,
               std::byte* result) {
  using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  constexpr bool exact = std::is_integral_v<T>;
  const auto rounded = [](Number number) { return Number(T(number)); };
  const Number share = rounded(Number(1) / Number(operands.size()));
  for (std::size_t i = 0; i < count; ++i) {
    const auto load = [&](const std::byte* operand) {
      T value;
      std::memcpy(static_cast<void*>(&value), operand + i * sizeof(T), sizeof(T));
      return op == ncclAvg && !exact ? rounded(Number(value) * share) : Number(value);
    };
    Number number = load(operands[0]);
    for (const std::byte* operand : operands.subspan(1))
      number = combine(op, number, load(operand));
    if (op == ncclAvg && exact) number = Number(number / Number(operands.size()));
    const T value(number);
    std::memcpy(result + i * sizeof(T), static_cast<const void*>(&value), sizeof(T));
  }
}

}  // namespace

void reduce(ncclDataType_t type, ncclRedOp_t op, std::span<const std::byte* const> operands,
            std::size_t count, std::byte* result) {
  switch (type) {
    case ncclInt8: return reduce_as<std::int8_t>(op, operands, count, result);
    case ncclUint8: return reduce_as<std::uint8_t>(op, operands, count, result);
    case ncclInt32: return reduce_as<std::int32_t>(op, operands, count, result);
    case ncclUint32: return reduce_as<std::uint32_t>(op, operands, count, result);
    case ncclInt64: return reduce_as<std::int64_t>(op, operands, count, result);
    case ncclUint64: return reduce_as<std::uint64_t>(op, operands, count, result);
    case ncclFloat16: return reduce_as<__half>(op, operands, count, result);
    case ncclBfloat16: return reduce_as<__nv_bfloat16>(op, operands, count, result);
    case ncclFloat32: return reduce_as<float>(op, operands, count, result);
    case ncclFloat64: return reduce_as<double>(op, operands, count, result);
    default: return;
  }
}

}  // namespace nccl_stand_in
