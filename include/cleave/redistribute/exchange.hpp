// S(i) -> S(j) and every other move: each rank receives the elements that it lacks.
//
// Receives |elements after - elements before|, the lower bound, in one message per peer.
#pragma once

#include <cleave/redistribute/run_transfers.hpp>

namespace cleave::inline v0::redistribution {

/// @return     a call whose result is the elements that this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives each element of the result that this rank lacks once; allocates the result
template <class Device>
Call exchange(const Step& step, const Block& block, const Context& context) {
  const bool all_pairs = step.kind == StepKind::all_to_all;
  Call call{all_pairs ? CollectiveKind::all_to_all : CollectiveKind::exchange,
            {},
            step.axes,
            context.shape.product(),
            block.view,
            allocate<Device>(block.view.dtype, own_box(step.to, context).extents())};
  call.even = all_pairs && shards_evenly(step.from, context.shape, context.mesh.extents()) &&
              shards_evenly(step.to, context.shape, context.mesh.extents());
  call.transfers = context.mesh.cache<TransferCache>().transfers(step, context.shape, context.mesh);
  return call;
}

}  // namespace cleave::inline v0::redistribution
