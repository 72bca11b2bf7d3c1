// R -> S(d), S(d) -> S(d) refined: every rank keeps a part of its elements.
//
// No communication. The part is copied, so that it does not keep the whole storage alive; nothing
// is copied if the part is the whole.
#pragma once

#include <cleave/redistribute/block.hpp>

namespace cleave::inline v0::redistribution {

/// @return the elements that this rank owns under `step.to`, dense unless they are all of `block`
/// @cost   a copy of the part
template <class Device>
Block slice(const Step& step, const Block& block, const Context& context) {
  const Box before = own_box(step.from, context);
  const Box after = own_box(step.to, context);
  if (before == after) return block;
  Block result = allocate<Device>(block.view.dtype, after.extents());
  strided_copy(Device{}, block.view[after.relative_to(before.begin)], result.view);
  return result;
}

}  // namespace cleave::inline v0::redistribution
