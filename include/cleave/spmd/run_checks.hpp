// Whether a program can run on a mesh, and takes the inputs that it is given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cleave/core/error.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/spmd/erased_tensor.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd::detail {

/// @throws Error if the program has a fault, or was expanded for another device or mesh
inline void require_fit(const ProgramFacts& of, std::string_view device, const MeshState& mesh) {
  const auto fail = [&](const std::string& why) {
    throw Error("spmd::run", "the program " + why,
                {.mesh = mesh.describe(), .rank = mesh.world_rank()});
  };
  const Shape& extents = mesh.extents();
  if (of.fault)
    throw Error("spmd::run", "the program could not be expanded: " + to_string(of.fault));
  if (of.axes != extents.dims)
    fail("is for " + std::to_string(of.axes) + " mesh axes, not for " +
         std::to_string(extents.dims));
  if (of.mesh.dims > 0 && !(of.mesh == extents))
    fail("was expanded for a mesh of extents " + cleave::to_string(of.mesh) + ", not " +
         cleave::to_string(extents));
  if (of.device != device)
    fail("was traced for device " + std::string(of.device) + ", not for " + std::string(device));
}

/// Whether an input matches the program. Ranks outside the mesh do not know extents. A Tensor is
/// the same on all ranks.
inline bool accepts(const PlacedValue& value, const OperandRef& x, const MeshState& mesh) {
  if (x.dtype != value.dtype || x.dims != value.shape.dims) return false;
  if (x.layout == nullptr ? !(value.layout == Layout::replicated(value.layout.axes))
                          : !(*x.layout == value.layout) || !(*x.mesh == mesh))
    return false;
  for (int d = 0; d < x.dims && mesh.is_member(); ++d)
    if (x.shape[d] != value.shape[d]) return false;
  return true;
}

/// @throws Error if a run is given more or fewer inputs than the program takes
inline void require_count(std::size_t taken, std::size_t given) {
  if (given != taken)
    throw Error("spmd::run", "the program takes " + std::to_string(taken) + " inputs, not " +
                                 std::to_string(given));
}

/// Input i does not match.
/// @param extents  that the program takes
[[noreturn]] inline void throw_refused(std::size_t i, const char* name, const PlacedValue& value,
                                       const OperandRef& x, const MeshState& mesh,
                                       const std::string& extents) {
  const Shape shape = cleave::detail::shape_at(x.shape, x.dims);
  const Layout layout = x.layout != nullptr ? *x.layout : Layout::replicated(mesh.extents().dims);
  const MeshState& on = x.mesh != nullptr ? *x.mesh : mesh;
  std::string text = std::string("input ") + std::to_string(i) + " '" + name + "' is " +
                     described(x.dtype, shape, layout);
  if (!(on == mesh)) text += " on another mesh than the program's";
  text += ", the program takes " + described(value.dtype, extents, value.layout);
  throw Error("spmd::run", text, context_of(shape, layout, on));
}

}  // namespace cleave::inline v0::spmd::detail
