// The box of a distributed array that a rank reads for its part of a result, as a local tensor.
#pragma once

#include <span>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/redistribute/read_boxes.hpp>

namespace cleave::inline v0 {

/// The layouts and extents of an operand and of a result with as many dimensions, for the maps of
/// `redistribution::Needs` to be set.
template <class T, int Rank, class Mesh, class P>
redistribution::Needs needs_of(const DTensor<T, Rank, Mesh, P>& x, const Layout& result,
                               const Shape& result_shape) {
  static_assert(!layout_of<P, Rank>.has_partial(),
                "cleave: ranks read elements of tensors without Partial; redistribute it first");
  static_assert(layout_of<P, Rank>.is_box(),
                "cleave: ranks read boxes of tensors whose parts are boxes, not of a BlockCyclic "
                "one; redistribute it to Shard first");
  return {{x.actual_layout()}, {result}, Shape(x.shape()), result_shape};
}

/// The elements of x that this rank's part of a result reads: `needs.box`.
///
///     auto needs = needs_of(x, x.actual_layout(), Shape(x.shape()));
///     needs.maps[0] = {1, 1, -1, 1};              // one row above and one below
///     auto rows = needed_box(x, needs);           // [own rows + 2, columns]
///
/// @return     a new tensor; elements beyond a clipped edge are unspecified, an empty one outside
///             of the mesh
/// @collective every rank of the mesh, with equal needs
/// @cost       receives what the rank lacks of the box; allocates the box
template <class T, int Rank, class Mesh, class P>
Tensor<T, Rank, typename Mesh::device_type> needed_box(const DTensor<T, Rank, Mesh, P>& x,
                                                       const redistribution::Needs& needs,
                                                       const char* operation = "needed_box") {
  using Device = typename Mesh::device_type;
  const MeshState& mesh = x.mesh().state();
  Shape extents = Shape::filled(Rank, 0);
  if (mesh.is_member()) extents = needs.box(mesh.extents(), mesh.coordinate()).extents();
  redistribution::Block box = redistribution::allocate<Device>(dtype_of<T>(), extents);
  const redistribution::BoxRead read{&needs, x.to_local().view(), box.view};
  redistribution::read_boxes<Device>(operation, {&read, 1}, mesh);
  return detail::tensor_of<Tensor<T, Rank, Device>>(std::move(box));
}

}  // namespace cleave::inline v0
