// Meshes as groups of functional collectives: a mesh of one axis, or a mesh and some of its axes.
#pragma once

#include <cleave/functional/functional_ranks.hpp>
#include <cleave/mesh/axis.hpp>
#include <cleave/mesh/device_mesh.hpp>

namespace cleave::inline v0 {

/// The ranks that differ from this one along the named axes only, row-major.
///
///     functional::all_reduce(x, Sum{}, {mesh, tp{}})
///
/// @collective the first time: the ranks of that group
/// @throws Error on a rank outside of the mesh
template <class Device, class... Axes, Axis First, Axis... More>
functional::Group group_of(const DeviceMesh<Device, Axes...>& mesh, First, More...) {
  constexpr AxisMask mask = detail::ascending_mask<DeviceMesh<Device, Axes...>, First, More...>();
  static_assert(mask != 0, "cleave: name the axes of a group in the order of the mesh");
  return functional::Group::of_axes(mesh.group(mask), mesh.state().label(mask));
}

/// All ranks of a mesh of one axis. For a mesh of several axes, name those of the group.
template <class Device, Axis First, Axis... More>
functional::Group group_of(const DeviceMesh<Device, First, More...>& mesh) {
  static_assert(sizeof...(More) == 0,
                "cleave: the mesh has several axes; name those of the group: {mesh, tp{}}");
  return group_of(mesh, First{});
}

}  // namespace cleave::inline v0
