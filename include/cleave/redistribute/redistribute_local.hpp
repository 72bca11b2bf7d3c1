// Redistribution of local elements without their types: no code below knows placement types.
#pragma once

#include <span>

#include <cleave/core/dtype.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/plan.hpp>

namespace cleave::inline v0::redistribution {

/// Turns the local elements under `source` into those under `target`.
///
/// @param fixed  the plan, if the layouts alone decide it (see `sizes_decide`); null otherwise
/// @return     `block` on a rank outside of the mesh, which takes no part
/// @collective every rank of the mesh
template <class Device>
Block run(const Plan* fixed, const Layout& source, const Layout& target, Block block,
          const Context& context);

/// The plan that `run` follows for a tensor on a mesh, for callers that repeat a redistribution
/// with `run_plan`.
///
/// @param fixed  as in `run`
/// @pre    this rank is in the mesh
template <class Device>
Plan choose_for(const Plan* fixed, const Layout& source, const Layout& target, DType dtype,
                const Context& context);

/// Runs a plan.
///
/// @return     `block` itself where no step changes it
/// @pre        this rank is in the mesh
/// @collective every rank of the mesh
template <class Device>
Block run_plan(const Plan& plan, Block block, const Context& context);

/// Redistributes several tensors of one mesh together, in fewer rounds.
///
/// @collective every rank of the mesh
template <class Device>
void run_all(std::span<ListEntry> entries);

/// Turns the local elements on `context.mesh` under `source` into those on `to` under `target`.
///
/// @param shape  in: the global shape, on ranks of the source mesh; out: on ranks of both meshes
/// @collective   every rank of either mesh
/// @cost         one reduce-scatter per reduction of partials; then receives each element that this
///               rank lacks once
/// @throws Error if the meshes were not made from the same group of ranks
template <class Device>
Block cross_redistribute(const Layout& source, const Layout& target, Block block,
                         const MeshState& from, const MeshState& to, Shape& shape);

}  // namespace cleave::inline v0::redistribution

#if !CLEAVE_COMPILED
#include <cleave/redistribute/redistribute_local_body.hpp>
#endif
