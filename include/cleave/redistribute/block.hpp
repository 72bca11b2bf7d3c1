// The operand of a plan's step: the local elements of one rank, without their static type, and the
// context that places them in the global array.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/step_box.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::redistribution {

/// Local elements and their storage.
struct Block {
  std::shared_ptr<void> storage{};
  View view{};
};

/// A new, dense, uninitialised block.
template <class Device>
Block allocate(DType dtype, const Shape& extents) {
  const std::size_t bytes =
      detail::checked_bytes(extents.values.data(), extents.dims, size_of(dtype));
  std::shared_ptr<void> storage = allocate_bytes(Device{}, bytes);
  void* data = storage.get();
  return {std::move(storage), View::dense(data, dtype, extents)};
}

/// Arguments that all steps of one redistribution share.
struct Context {
  const MeshState& mesh;
  Shape shape;            ///< global extents
  const char* operation;  ///< the function that the user called
  bool reuse = false;     ///< whether the result may use the storage of the source
};

/// One of a list of tensors that are redistributed together.
struct ListEntry {
  const Plan*
      fixed;  ///< the plan, if the layouts alone decide it (see `sizes_decide`); null otherwise
  Layout source;
  Layout target;
  Block block;  ///< in: under `source`; out: under `target`
  Context context;
  bool is_exact = false;  ///< whether `fixed` is the plan whatever the layouts and the mesh
};

/// The boxes of the members of the group over `axes` that this rank is in, counted from `origin`.
/// @pre of.is_box()
inline std::vector<Box> boxes_of_members(const StepLayout& of, const Context& context,
                                         AxisMask axes, const Shape& origin) {
  std::vector<Box> boxes(std::size_t(context.mesh.size(axes)));
  for (std::size_t r = 0; r < boxes.size(); ++r)
    boxes[r] =
        owned_box(of, context.shape, context.mesh.extents(), context.mesh.member(axes, index_t(r)))
            .relative_to(origin);
  return boxes;
}

/// The local extents of this rank.
inline Shape own_extents(const StepLayout& of, const Context& context) {
  return local_extents(of, context.shape, context.mesh.extents(), context.mesh.coordinate());
}

/// The box of this rank. @pre of.is_box()
inline Box own_box(const StepLayout& of, const Context& context) {
  return owned_box(of, context.shape, context.mesh.extents(), context.mesh.coordinate());
}

}  // namespace cleave::inline v0::redistribution
