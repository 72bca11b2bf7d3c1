// P(op) -> S(d): ranks reduce their addends and each keeps one shard, in one step whatever the
// dimension; several axes are one reduce-scatter over the flattened group.
//
// Receives S(n-1)/n elements of the S that each rank has.
#pragma once

#include <vector>

#include <cleave/redistribute/block.hpp>

namespace cleave::redistribution {

/// @return     the reduced elements that this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives (n-1)/n of `block`; allocates the result
inline Block reduce_scatter(const Step& step, const Block& block, const Context& context) {
  Communicator& group = *context.mesh.group(step.axes);
  const Box before = own_box(step.from, context);
  std::vector<Box> pieces(std::size_t(group.size()));
  for (int r = 0; r < group.size(); ++r)
    pieces[std::size_t(r)] =
        box_of_member(step.to, context, step.axes, r).relative_to(before.begin);
  Block result = allocate(block.view.dtype, own_box(step.to, context).extents());
  Collective call;
  call.kind = CollectiveKind::reduce_scatter;
  call.op = step.op;
  call.source = block.view;
  call.destination = result.view;
  call.pieces = pieces;
  call.global_count = block.view.size();
  call.operation = context.operation;
  call.axes = context.mesh.label(step.axes).c_str();
  group.run(call);
  return result;
}

}  // namespace cleave::redistribution
