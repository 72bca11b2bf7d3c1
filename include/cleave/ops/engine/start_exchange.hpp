// An exchange of local elements that runs while its rank computes.
#pragma once

#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/comm/collective.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/redistribute/run_transfers.hpp>
#include <cleave/redistribute/step_call.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// The step from one layout to another as an exchange of boxes.
inline Step exchange_step(const Layout& from, const Layout& to, int dims) {
  Step step = move_step({from}, {to}, dims);
  step.kind = StepKind::exchange;
  return step;
}

/// Starts an exchange. Its source and destination must not be accessed before it is waited for.
///
/// @param call      its transfers lead from `call.source` to `call.result`
/// @collective      every rank of the mesh, in the same order as its other asynchronous calls
template <class Device>
Async<bool> start_exchange(redistribution::Call call, const redistribution::Context& context) {
  return start_async(Device{}, context.mesh.group(),
                     [call = std::move(call), context, mesh = context.mesh.duplicate()] {
                       const Collective c = call.collective(context);
                       if (mesh->size(call.axes) > 1) {
                         mesh->group(call.axes)->run(c);
                       } else if (!is_dry()) {
                         for (const Transfer& t : c.receives)
                           strided_copy(Device{}, c.source[t.source], c.destination[t.destination]);
                       }
                       return true;
                     });
}

}  // namespace cleave::inline v0::detail
