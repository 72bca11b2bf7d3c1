// Runs a plan: each step is one call of its primitive. Nothing here is typed by placement, and
// nothing decides: all ranks run the steps of the same plan.
#pragma once

#include <utility>

#include <cleave/redistribute/all_gather.hpp>
#include <cleave/redistribute/all_reduce.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/reduce_scatter.hpp>
#include <cleave/redistribute/slice.hpp>
#include <cleave/redistribute/to_partial.hpp>

namespace cleave::redistribution {

/// Runs the steps of a plan on the local elements of this rank.
///
/// @return     the local elements under the plan's last layout; `block` itself where no step
///             changes them
/// @collective every rank of the mesh
/// @throws Error if a collective fails
inline Block execute(const Plan& plan, Block block, Context context) {
  const bool reuse = context.reuse;
  const void* source = block.view.data;
  for (const Step& step : plan) {
    switch (step.kind) {
      case StepKind::slice: block = slice(step, block, context); break;
      case StepKind::to_partial: block = to_partial(step, block, context); break;
      case StepKind::all_gather: block = all_gather(step, block, context); break;
      case StepKind::all_to_all:
      case StepKind::exchange: block = exchange(step, block, context); break;
      case StepKind::reduce_scatter: block = reduce_scatter(step, block, context); break;
      case StepKind::all_reduce: block = all_reduce(step, block, context); break;
    }
    context.reuse = reuse || block.view.data != source;  // what lies between two steps is ours
  }
  return block;
}

/// Turns the local elements under `source` into those under `target`.
///
/// @param fixed  the plan, if the layouts alone decide it (see `sizes_decide`); null otherwise
/// @return       `block` on a rank outside of the mesh, which takes no part
/// @collective   every rank of the mesh
inline Block run(const Plan* fixed, const Layout& source, const Layout& target, Block block,
                 const Context& context) {
  if (!context.mesh.is_member()) return block;
  if (fixed != nullptr && !context.mesh.has_unit_axis())
    return execute(*fixed, std::move(block), context);
  const Plan& plan = context.mesh.attachment<PlanCache>().plan(
      source, target, context.shape, context.mesh, size_of(block.view.dtype));
  return execute(plan, std::move(block), context);
}

}  // namespace cleave::redistribution
