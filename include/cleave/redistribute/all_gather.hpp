// S(d) -> R: every rank of a group receives the shards of the others; several axes and several
// dimensions at once are one gather over the flattened group.
//
// Receives S(n-1)/n elements for a result of S elements. Short and empty shards need no padding.
#pragma once

#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// @return     a call whose result is the elements that this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives (n-1)/n of the result; allocates the result
template <class Device>
Call all_gather(const Step& step, const Block& block, const Context& context) {
  const Box after = own_box(step.to, context);
  Call call{CollectiveKind::all_gather,
            {},
            step.axes,
            after.volume(),
            block.view,
            allocate<Device>(block.view.dtype, after.extents())};
  call.pieces = boxes_of_members(step.from, context, step.axes, after.begin);
  return call;
}

}  // namespace cleave::inline v0::redistribution
