// Runs a plan: each step is one call of its primitive. Nothing here is typed by placement, and
// nothing decides: all ranks run the steps of the same plan.
#pragma once

#include <cleave/redistribute/all_gather.hpp>
#include <cleave/redistribute/all_reduce.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/plan.hpp>
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
inline Block execute(const Plan& plan, Block block, const Context& context) {
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
  }
  return block;
}

/// The layout without the axes that have one rank: they place nothing.
constexpr Layout without_unit_axes(Layout layout, const Shape& mesh) {
  for (int a = 0; a < layout.axes; ++a)
    if (mesh[a] == 1) layout[a] = Placement::replicate();
  return layout;
}

/// Turns the local elements under `source` into those under `target`.
///
/// @param plan  `make_plan(source, target, dims)`, known at compile time where the layouts are
/// @collective  every rank of the mesh
inline Block run(const Plan& plan, const Layout& source, const Layout& target, const Block& block,
                 const Context& context) {
  const Shape& mesh = context.mesh.extents();
  bool unit = false;
  for (int a = 0; a < mesh.dims; ++a) unit = unit || mesh[a] == 1;
  if (!unit) return execute(plan, block, context);
  return execute(make_plan(without_unit_axes(source, mesh), without_unit_axes(target, mesh),
                           context.shape.dims),
                 block, context);
}

}  // namespace cleave::redistribution
