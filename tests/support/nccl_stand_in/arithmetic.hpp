// The arithmetic of reductions, by loops: in float for the small floating-point types.
#pragma once

#include <cstddef>
#include <span>

#include <nccl.h>

namespace nccl_stand_in {

/// result[i] = op over the ranks, in rank order, of operands[rank][i].
/// @param op  ncclAvg of a floating-point type, and premultiplied operations, are sums here
void reduce(ncclDataType_t type, ncclRedOp_t op, std::span<const std::byte* const> operands,
            std::size_t count, std::byte* result);

/// Multiplies each element by the scalar, in the elements' type.
void premultiply(ncclDataType_t type, const std::byte* scalar, std::byte* elements,
                 std::size_t count);

/// Writes 1/n as an element.
/// @return whether averages of the type are sums of premultiplied elements: not for integers
bool reciprocal(ncclDataType_t type, int n, std::byte* element);

}  // namespace nccl_stand_in
