// S(d) -> R: every rank of a group receives the shards of the others; several axes and several
// dimensions at once are one gather over the flattened group.
//
// Receives S(n-1)/n elements of the S that the result has. Short and empty shards need no padding.
#pragma once

#include <vector>

#include <cleave/redistribute/block.hpp>

namespace cleave::redistribution {

/// @return     what this rank owns under `step.to`: the shards of all ranks of the group
/// @collective the ranks that differ in `step.axes`
/// @cost       receives (n-1)/n of the result; allocates the result
inline Block all_gather(const Step& step, const Block& block, const Context& context) {
  Communicator& group = *context.mesh.group(step.axes);
  const Box after = own_box(step.to, context);
  std::vector<Box> pieces(std::size_t(group.size()));
  for (int r = 0; r < group.size(); ++r)
    pieces[std::size_t(r)] =
        box_of_member(step.from, context, step.axes, r).relative_to(after.begin);
  Block result = allocate(block.view.dtype, after.extents());
  Collective call;
  call.kind = CollectiveKind::all_gather;
  call.source = block.view;
  call.destination = result.view;
  call.pieces = pieces;
  call.global_count = result.view.size();
  call.operation = context.operation;
  call.axes = context.mesh.label(step.axes).c_str();
  group.run(call);
  return result;
}

}  // namespace cleave::redistribution
