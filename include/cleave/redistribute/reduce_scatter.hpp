// P(op) -> S(d): ranks reduce their addends and each keeps one shard, in one step for any
// dimension; several axes are one reduce-scatter over the flattened group.
//
// Receives S(n-1)/n elements for addends of S elements.
#pragma once

#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// @return     a call whose result is the reduced elements that this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives (n-1)/n of `block`; allocates the result
template <class Device>
Call reduce_scatter(const Step& step, const Block& block, const Context& context) {
  const Box before = own_box(step.from, context);
  Call call{CollectiveKind::reduce_scatter,
            step.op,
            step.axes,
            before.volume(),
            block.view,
            allocate<Device>(block.view.dtype, own_extents(step.to, context))};
  call.pieces = boxes_of_members(step.to, context, step.axes, before.begin);
  return call;
}

}  // namespace cleave::inline v0::redistribution
