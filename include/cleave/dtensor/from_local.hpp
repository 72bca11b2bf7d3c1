// from_local: tensors that every rank already has become the parts of one global array.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>

namespace cleave {

/// How far `from_local` trusts its caller.
struct FromLocalOptions {
  /// Broadcast replicas from the first rank of their axes, so that they are equal for certain.
  bool run_check = false;
};

namespace detail {

/// The local extents of all ranks of the mesh, one Shape each.
inline std::vector<Shape> gather_extents(const Shape& mine, const MeshState& mesh) {
  Communicator& group = mesh.group().host();
  const auto size = std::size_t(group.size());
  std::vector<index_t> flat(size * std::size_t(max_dims));
  std::vector<Box> pieces(size);
  for (std::size_t r = 0; r < size; ++r)
    pieces[r] = {Shape(std::array<index_t, 1>{index_t(r) * max_dims}),
                 Shape(std::array<index_t, 1>{index_t(r + 1) * max_dims})};
  Collective call;
  call.kind = CollectiveKind::all_gather;
  call.source =
      ConstView::dense(mine.values.data(), DType::int64, Shape(std::array<index_t, 1>{max_dims}));
  call.destination = View::dense(flat.data(), DType::int64,
                                 Shape(std::array<index_t, 1>{index_t(flat.size())}));
  call.pieces = pieces;
  call.operation = "from_local";
  group.run(call);
  std::vector<Shape> all(size, mine);
  for (std::size_t r = 0; r < size; ++r)
    for (int d = 0; d < mine.dims; ++d)
      all[r][d] = flat[r * std::size_t(max_dims) + std::size_t(d)];
  return all;
}

/// The global shape that local extents add up to. @throws Error on every rank if some rank's
/// extents are not what the chunk rule gives it
inline Shape global_shape(const Shape& mine, const Layout& layout, const MeshState& mesh) {
  const std::vector<Shape> all = gather_extents(mine, mesh);
  Shape shape = mine;
  for (int d = 0; d < mine.dims; ++d) {
    AxisMask sharding = 0;
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].is_shard(d)) sharding |= 1u << a;
    shape[d] = 0;  // of the ranks that stand first on all axes that do not shard d
    for (std::size_t r = 0; r < all.size(); ++r) {
      const Shape at = coordinate_of(mesh.extents(), index_t(r));
      bool counts = true;
      for (int a = 0; a < layout.axes; ++a)
        counts = counts && ((sharding >> a & 1u) || at[a] == 0);
      if (counts) shape[d] += all[r][d];
    }
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Shape expected =
        local_shape(layout, shape, mesh.extents(), coordinate_of(mesh.extents(), index_t(r)));
    if (!(expected == all[r]))
      throw Error("from_local",
                  "the local tensors add up to " + to_string(shape) + ", of which rank " +
                      std::to_string(mesh.world_ranks()[r]) + " owns " + to_string(expected) +
                      ", but it passed " + to_string(all[r]),
                  {to_string(shape), to_string(layout), mesh.describe(), mesh.world_rank()});
  }
  return shape;
}

/// Every replica gets the values of the first rank of its axes.
template <class Device>
void broadcast_replicas(const View& local, const Layout& layout, const MeshState& mesh,
                        const char* operation) {
  AxisMask replicated = 0;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].is_replicate()) replicated |= 1u << a;
  if (mesh.size(replicated) == 1) return;
  Collective call;
  call.kind = CollectiveKind::broadcast;
  call.source = local;
  call.destination = local;
  call.global_count = local.size();
  call.operation = operation;
  call.axes = mesh.label(replicated).c_str();
  communicator_on(Device{}, *mesh.group(replicated)).run(call);
}

}  // namespace detail

/// Local tensors as one global array whose shape follows from theirs.
///
/// The extents of all ranks are compared with the chunk rule, always: uneven parts that do not
/// follow it would gather wrongly. With `run_check` replicas are broadcast from the first rank
/// of their axes (into a copy; the caller's tensors stay as they are).
///
/// @collective every rank of the mesh
/// @cost       one small all-gather; with `run_check` a copy and a broadcast of the replicas
/// @throws Error on every rank, naming the first rank whose part is not what it owns
template <class T, int Rank, class Mesh, class... P>
auto from_local(Tensor<T, Rank, typename Mesh::device_type> local, const Mesh& mesh,
                Placements<P...>, FromLocalOptions options = {}) {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: from_local takes exactly one placement per mesh axis");
  using Result = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  if (!mesh.is_member()) return Result(typename Result::local_type(), mesh, {});
  const Shape shape =
      detail::global_shape(Shape(local.shape()), Result::layout, mesh.state());
  if (options.run_check) {
    local = local.clone();
    detail::broadcast_replicas<typename Mesh::device_type>(local.view(), Result::layout, mesh.state(), "from_local");
  }
  return Result(std::move(local), mesh, to_array<Rank>(shape));
}
template <class T, int Rank, class Mesh, PlacementType... P>
auto from_local(Tensor<T, Rank, typename Mesh::device_type> local, const Mesh& mesh, P...) {
  return from_local(std::move(local), mesh, Placements<P...>{});
}

/// The same with the global shape given: no communication, this rank's part is checked alone.
/// @throws Error if the local extents are not what this rank owns
template <class T, int Rank, class Mesh, PlacementType... P>
auto from_local(Tensor<T, Rank, typename Mesh::device_type> local,
                const std::array<index_t, std::size_t(Rank)>& shape, const Mesh& mesh, P...) {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: from_local takes exactly one placement per mesh axis");
  using Result = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  return Result::from_local(std::move(local), mesh, shape);
}

}  // namespace cleave
