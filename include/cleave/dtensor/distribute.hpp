// distribute_tensor: scatters an array that one rank holds; every rank of the mesh gets its part.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/from_local.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Scatters the first rank's array over the group of the sharding axes.
/// @tparam Device  of both views
template <class Device>
void scatter_shards(const ConstView& whole, const View& part, const Layout& layout,
                    const Shape& shape, const MeshState& mesh) {
  const AxisMask sharding = layout.sharding_axes();
  if (mesh.size(sharding) == 1) return strided_copy(Device{}, whole, part);
  Communicator& group = communicator_on(Device{}, *mesh.group(sharding));
  std::vector<Box> pieces;
  if (group.rank() == 0)
    for (int r = 0; r < group.size(); ++r)
      pieces.push_back(owned_box(layout, shape, mesh.extents(), mesh.member(sharding, r)));
  Collective call = Collective::scatter(whole, part, pieces, shape.product())
                        .named("distribute_tensor", mesh.label(sharding).c_str());
  call.even = redistribution::shards_evenly(StepLayout{layout}, shape, mesh.extents());
  group.run(call);
}

/// The same for layouts that are not of boxes: a redistribution from the first rank.
/// @return the part of this rank
template <class T, int Rank, class From, class Mesh>
auto scatter_runs(const Tensor<T, Rank, From>& tensor, const Layout& layout, const Shape& shape,
                  const Mesh& mesh) {
  using Device = typename Mesh::device_type;
  Layout first = layout;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].shards()) first[a] = Placement::owned(0, 0);
  const Shape held = local_shape(first, shape, mesh.extents(), mesh.coordinate());
  const auto whole =
      held == shape ? tensor.to(Device{}) : Tensor<T, Rank, Device>(to_array<Rank>(held));
  return tensor_of<Tensor<T, Rank, Device>>(
      redistribution::run<Device>(nullptr, first, layout, {whole.storage(), whole.view()},
                                  {mesh.state(), shape, "distribute_tensor"}));
}

}  // namespace detail

/// Distributes an array of the mesh's first rank over all ranks of the mesh.
///
/// Only the first rank of the mesh needs the tensor; the arguments of other ranks are ignored. The
/// parts are scattered over the sharding axes, then broadcast over the replicating ones. If every
/// rank has the array already, `from_local(.., Replicate{}..).redistribute(..)` places it without
/// communication. A rank outside the mesh gets an empty part and does not communicate. A host array
/// may be placed on devices: the parts are communicated on the host, then copied to the device.
///
/// @collective every rank of the mesh
/// @cost       each rank receives its part once; allocates it
template <class T, int Rank, class From, class Mesh, class... P>
auto distribute_tensor(const Tensor<T, Rank, From>& tensor, const Mesh& mesh,
                       [[maybe_unused]] const Placements<P...>& placements) {
  using Device = typename Mesh::device_type;
  static_assert(std::is_same_v<From, Device> || std::is_same_v<From, Host>,
                "cleave: distribute_tensor takes a tensor of the host or of the mesh's device");
  static_assert((PlacementType<P> && ...),
                "cleave: distribute_tensor takes placements: Shard<dim>{} or Replicate{}");
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: distribute_tensor takes exactly one placement per mesh axis");
  using Result = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  static_assert(!Result::layout.has_partial(),
                "cleave: a tensor cannot be distributed as Partial; operations make partials");
  const MeshState& state = mesh.state();
  Layout layout = Result::layout;
  if constexpr (Result::is_open) layout = detail::with_numbers(layout, placements);
  if (!state.is_member())
    return Result::unchecked(typename Result::local_type(), mesh, tensor.shape(), layout);
  const Shape shape =
      detail::broadcast_shape(state.group().host(), Shape(tensor.shape()), "distribute_tensor");
  if constexpr (Result::is_open) detail::require_fitting(layout, shape, state, "distribute_tensor");
  const auto global = to_array<Rank>(shape);
  const Shape& at = mesh.coordinate();
  bool first_replica = true;
  for (int a = 0; a < layout.axes; ++a)
    first_replica = first_replica && (layout[a].shards() || at[a] == 0);
  const auto extents = to_array<Rank>(local_shape(layout, shape, mesh.extents(), at));
  if constexpr (!Result::layout.is_box()) {
    const auto local = first_replica ? detail::scatter_runs(tensor, layout, shape, mesh)
                                     : Tensor<T, Rank, Device>(extents);
    detail::broadcast_replicas<Device>(local.view(), layout, state, "distribute_tensor");
    return Result::unchecked(local, mesh, global, layout);
  }
  const Tensor<T, Rank, From> local(extents);
  if (first_replica)
    detail::scatter_shards<From>(tensor.view(), local.view(), layout, shape, state);
  detail::broadcast_replicas<From>(local.view(), layout, state, "distribute_tensor");
  return Result::unchecked(local.to(Device{}), mesh, global, layout);
}

/// A DTensor that is distributed so already: returned as it is, without communication.
/// @throws Error if it is on another mesh
template <class X, class Mesh, class... P>
  requires is_dtensor<X>
X distribute_tensor(const X& x, const Mesh& mesh,
                    [[maybe_unused]] const Placements<P...>& placements) {
  constexpr bool matches = [] {
    if constexpr (std::is_same_v<Mesh, typename X::mesh_type> && sizeof...(P) == Mesh::axis_count)
      return layout_of<Placements<P...>, X::dims> == X::layout;
    else return false;
  }();
  static_assert(matches,
                "cleave: distribute_tensor: the tensor is distributed already, on another kind of "
                "mesh or under other placements; call redistribute");
  if (!(x.mesh() == mesh))
    throw Error("distribute_tensor",
                "the tensor is on another mesh already; to move it to " + mesh.describe() +
                    ", call redistribute(mesh, ..)",
                x.context());
  if constexpr (X::is_open)
    if (!(detail::with_numbers(X::layout, placements) == x.actual_layout()))
      throw Error("distribute_tensor",
                  "the tensor is cut otherwise already; to cut it as " + to_string(placements) +
                      ", call redistribute",
                  x.context());
  return x;
}

/// Placements as separate arguments; without placements every axis is Replicate.
template <class X, class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto distribute_tensor(const X& x, const Mesh& mesh, P... p) {
  static_assert(detail::call_level<X> >= 0,
                "cleave: distribute_tensor takes a Tensor: make a Tensor of the elements first");
  if constexpr (detail::call_level<X> < 0) return;
  else if constexpr (sizeof...(P) == 0)
    return distribute_tensor(x, mesh, replicated_t<Mesh::axis_count>{});
  else return distribute_tensor(x, mesh, Placements<P...>(p...));
}

}  // namespace cleave::inline v0
