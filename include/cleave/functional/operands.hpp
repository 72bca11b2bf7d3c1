// Runs all tensors of one all-reduce, all-gather or reduce-scatter in one round, independent of
// their types.
//
// Tensors are communicated in place: for any strides and dimension, pieces are boxes of a view. Of
// several tensors, the small ones of an element type share one packed buffer; packing large ones
// would cost more than it saves.
#pragma once

#include <span>

#include <cleave/comm/collective.hpp>
#include <cleave/functional/bundle.hpp>
#include <cleave/functional/run_functional.hpp>

namespace cleave::inline v0::functional::detail {

using cleave::detail::Operand;

/// Runs an all-reduce, all-gather or reduce-scatter of all operands in one round.
/// @collective every rank of the group, with operands of the same extents and types
template <class Device>
void run_operands(const Channel& channel, CollectiveKind kind, ReduceOp op,
                  std::span<const Operand> operands);

}  // namespace cleave::inline v0::functional::detail

#if !CLEAVE_COMPILED
#include <cleave/functional/operands_body.hpp>
#endif
