// The arithmetic of reductions, by loops: in float for the small floating-point types.
#pragma once

#include <cstddef>
#include <span>

#include <nccl.h>

namespace nccl_stand_in {

/// result[i] = op over the ranks, in rank order, of operands[rank][i]. An average of floating-point
/// numbers is a sum of products with 1/n, rounded to the type.
void reduce(ncclDataType_t type, ncclRedOp_t op, std::span<const std::byte* const> operands,
            std::size_t count, std::byte* result);

}  // namespace nccl_stand_in
