// P(op) -> R: ranks reduce their addends and all keep the result; several axes with one reduction
// are one all-reduce over the flattened group.
//
// Receives 2S(n-1)/n elements of the S that each rank has.
#pragma once

#include <cleave/redistribute/block.hpp>

namespace cleave::redistribution {

/// @return     the reduced elements, the same on every rank of the group
/// @collective the ranks that differ in `step.axes`
/// @cost       receives 2(n-1)/n of `block`; allocates the result unless it may reuse `block`
inline Block all_reduce(const Step& step, const Block& block, const Context& context) {
  Communicator& group = *context.mesh.group(step.axes);
  Block result =
      context.reuse ? block : allocate(block.view.dtype, block.view.extents);
  Collective call;
  call.kind = CollectiveKind::all_reduce;
  call.op = step.op;
  call.source = block.view;
  call.destination = result.view;
  call.global_count = block.view.size();
  call.operation = context.operation;
  call.axes = context.mesh.label(step.axes).c_str();
  group.run(call);
  return result;
}

}  // namespace cleave::redistribution
