// P(op) -> R: ranks reduce their addends and all keep the result; several axes with the same
// reduction are one all-reduce over the flattened group.
//
// Receives 2S(n-1)/n elements for addends of S elements.
#pragma once

#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::redistribution {

/// @return     a call whose result is the reduced elements, the same on every rank of the group
/// @collective the ranks that differ in `step.axes`
/// @cost       receives 2(n-1)/n of `block`; allocates the result unless it may reuse `block`
template <class Device>
Call all_reduce(const Step& step, const Block& block, const Context& context) {
  // several elements of a non-contiguous view may be at one address
  const bool in_place = context.reuse && block.view.contiguous();
  return {CollectiveKind::all_reduce,
          step.op,
          step.axes,
          block.view.size(),
          block.view,
          in_place ? block : allocate<Device>(block.view.dtype, block.view.extents)};
}

}  // namespace cleave::inline v0::redistribution
