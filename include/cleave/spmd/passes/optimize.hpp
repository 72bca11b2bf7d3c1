// All passes over the communication of a program, in their order.
#pragma once

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/spmd/estimate.hpp>
#include <cleave/spmd/passes/coalesce.hpp>
#include <cleave/spmd/passes/share_moves.hpp>
#include <cleave/spmd/passes/shift_moves.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/passes/start_early.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/with_extents.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// For extents that are known.
template <AnyProgram P>
constexpr Program optimize_once(const P& program, const Shape& mesh, const ProgramCosts& costs) {
  Program better = without_symbols(program);
  if (program.fault) return better;
  const CostModel& model = costs.communication;
  hoist_slices(better, mesh, model);
  share_moves(better, mesh, model);
  sink_gathers(better, mesh, model);
  share_moves(better, mesh, model);
  return start_early(coalesce(split_moves(better, mesh, model), mesh, costs), mesh, costs);
}

}  // namespace detail

/// The program with less communication, in fewer calls, that run while ranks compute.
///
///     Runner runner(optimize(program, mesh), mesh);
///
/// @param mesh   extents of the axes: the only mesh that the result runs on
/// @param costs  of the machine, equal on all ranks
/// @return       a program that receives no more bytes, with the same results. Sums have the same
///               bits where collectives add in rank order: among threads, on one node, and with
///               CLEAVE_REPRODUCIBLE. If extents contain symbols, a Runner optimizes again for the
///               extents of a run
template <AnyProgram P>
constexpr Program optimize(const P& program, const Shape& mesh, const ProgramCosts& costs = {}) {
  return with_passes(
      program, [mesh, costs](const auto& now) { return detail::optimize_once(now, mesh, costs); });
}

/// The same for a mesh, with the costs of its machine.
/// @param costs  but for those of communication
template <AnyProgram P, class Device, class... Axes>
Program optimize(const P& program, const DeviceMesh<Device, Axes...>& mesh,
                 ProgramCosts costs = {}) {
  costs.communication = cost_model(*mesh.state().world());
  return optimize(program, mesh.extents(), costs);
}

}  // namespace cleave::inline v0::spmd
