// DTensor: a global array distributed over a mesh; its type says which part each rank holds.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <cleave/comm/async.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/owned_boxes.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave {

template <Element T, int Rank, class Mesh, class P>
class DTensor;

template <class X>
inline constexpr bool is_dtensor = false;
template <class T, int Rank, class Mesh, class P>
inline constexpr bool is_dtensor<DTensor<T, Rank, Mesh, P>> = true;

namespace detail {

template <class T, int Rank, class Mesh, class P>
inline constexpr int call_level<DTensor<T, Rank, Mesh, P>> = 1;

template <class To, class T, int Rank, class Mesh, class P>
DTensor<T, Rank, Mesh, To> redistribute_to(const DTensor<T, Rank, Mesh, P>& x,
                                           const char* operation, bool reuse = false);

template <class To, class T, int Rank, class Mesh, class P>
Async<DTensor<T, Rank, Mesh, To>> start_redistribute(const DTensor<T, Rank, Mesh, P>& x);

template <class To, class T, int Rank, class Mesh, class P, class Target>
DTensor<T, Rank, Target, To> redistribute_across(const DTensor<T, Rank, Mesh, P>& x,
                                                 const Target& mesh);

/// The placements that a user may request; a compile-time error for all others.
template <int Rank, class Mesh, class... Q>
constexpr auto target_placements() {
  constexpr bool are_placements = (PlacementType<Q> && ...);
  constexpr bool one_per_axis = sizeof...(Q) == std::size_t(Mesh::axis_count);
  static_assert(
      are_placements,
      "cleave: redistribute takes placements: Shard<dim>{} or Replicate{}; they are types, "
      "so a program that chooses at run time branches between calls");
  static_assert(!are_placements || one_per_axis,
                "cleave: redistribute takes exactly one placement per mesh axis");
  if constexpr (are_placements && one_per_axis) {
    using To = normalized_t<Placements<Q...>, Rank>;
    static_assert(!layout_of<To, Rank>.has_partial(),
                  "cleave: a DTensor cannot be redistributed to Partial; operations make partials, "
                  "redistribute resolves them");
    return To{};
  } else {
    return replicated_t<Mesh::axis_count>{};  // valid, so that no further errors follow
  }
}

}  // namespace detail

/// A global array of `Rank` dimensions, distributed over the axes of a mesh as `P` says.
///
/// A handle: copies share the local storage. The part of a rank follows from the type, the global
/// shape and the rank's coordinate alone (`local_box`).
///
/// @tparam P  `Placements<..>` with one placement per axis, dimensions counted from the front
template <Element T, int Rank, class Mesh, class P>
class DTensor : public RefusedElements<DTensor<T, Rank, Mesh, P>> {
  static_assert(is_device_mesh<Mesh>, "cleave: the third parameter of a DTensor is a DeviceMesh");
  static_assert(detail::is_placements<P>,
                "cleave: the fourth parameter of a DTensor is Placements<..>");
  static_assert(P::size == Mesh::axis_count,
                "cleave: a DTensor has exactly one placement per mesh axis");
  static_assert(std::is_same_v<P, normalized_t<P, Rank>>,
                "cleave: the type of a DTensor counts Shard dimensions from the front");

 public:
  using value_type = T;
  using mesh_type = Mesh;
  using device_type = typename Mesh::device_type;
  using placements_type = P;
  using local_type = Tensor<T, Rank, device_type>;
  using Extents = std::array<index_t, std::size_t(Rank)>;
  static constexpr int dims = Rank;
  /// The placements as a value.
  static constexpr Layout layout = layout_of<P, Rank>;

  /// Makes a DTensor from local elements that are already placed as the type says, unchecked.
  ///
  /// @param shape  global extents
  /// @collective   none
  /// @see from_local, which checks
  static DTensor unchecked(local_type local, Mesh mesh, const Extents& shape) {
    return DTensor(std::move(local), std::move(mesh), shape);
  }

  /// Global extents.
  const Extents& shape() const noexcept { return shape_; }
  /// The global extent of dimension d; negative d counts from the end.
  /// @throws Error if there is no such dimension
  index_t extent(int d) const {
    const int k = d < 0 ? d + Rank : d;
    if (k < 0 || k >= Rank)
      throw Error(
          "DTensor",
          "dimension " + std::to_string(d) + " of " + std::to_string(Rank) + " does not exist",
          context());
    return shape_[std::size_t(k)];
  }
  /// The number of global elements.
  index_t size() const noexcept { return Shape(shape_).product(); }
  const Mesh& mesh() const noexcept { return mesh_; }
  constexpr P placements() const noexcept { return {}; }

  /// The local part of this rank: shares the storage, neither communicates nor reduces partials.
  const local_type& to_local() const noexcept { return local_; }
  /// The global indices of the local elements; empty on a rank outside the mesh.
  Box local_box() const {
    static_assert(layout.is_box(),
                  "cleave: the part of a BlockCyclic tensor is no box: use each_local_box, or "
                  "redistribute the tensor to Shard first");
    if (!mesh_.is_member()) return Box::of(Shape::filled(Rank, 0));
    return owned_box(layout, Shape(shape_), mesh_.extents(), mesh_.coordinate());
  }
  /// Calls f(global indices, the same elements as a box of `to_local()`) for boxes that together
  /// are the local part: one, or one per product of blocks of BlockCyclic. Not called outside the
  /// mesh.
  template <class F>
  void each_local_box(const F& f) const {
    if (mesh_.is_member())
      each_owned_box(layout, Shape(shape_), mesh_.extents(), mesh_.coordinate(), f);
  }

  /// The same global array under other placements, one per axis of the mesh.
  ///
  /// The plan is a constant of the types, except where the sizes decide which plan is cheapest. If
  /// the placements are equal, the result is another handle to this tensor. The result may reuse
  /// the storage of an rvalue that does not share it.
  /// @collective every rank of the mesh
  /// @cost       receives what this rank lacks (see docs/redistribution.md); allocates the result
  template <class... Q>
    requires(!(is_device_mesh<Q> || ...))
  auto redistribute(Q...) const& {
    using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
    if constexpr (std::is_same_v<To, P>) return *this;
    else return detail::redistribute_to<To>(*this, "redistribute");
  }
  template <class... Q>
    requires(!(is_device_mesh<Q> || ...))
  auto redistribute(Q...) && {
    using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
    if constexpr (std::is_same_v<To, P>) return std::move(*this);
    else
      return detail::redistribute_to<To>(
          *this, "redistribute", !local_.shared() && is_allocated(device_type{}, local_.storage()));
  }
  template <class... Q>
  auto redistribute(Placements<Q...>) const& {
    return redistribute(Q{}...);
  }
  template <class... Q>
  auto redistribute(Placements<Q...>) && {
    return std::move(*this).redistribute(Q{}...);
  }

  /// The same global array on another mesh of the same world: other ranks, axes or extents.
  ///
  /// A rank that is in only one of the meshes holds an empty part in the other.
  /// @collective every rank of either mesh
  /// @cost       for partials one reduce-scatter on this mesh; then receives what this rank
  ///             lacks; allocates the result
  /// @throws Error if the meshes were not made from the same World
  template <class Device, class... Axes, class... Q>
  auto redistribute(const DeviceMesh<Device, Axes...>& mesh, Q...) const {
    using Target = DeviceMesh<Device, Axes...>;
    static_assert(std::is_same_v<Device, device_type>,
                  "cleave: the meshes of a redistribution must have the same device");
    using To = decltype(detail::target_placements<Rank, Target, Q...>());
    return detail::redistribute_across<To>(*this, mesh);
  }
  template <class Device, class... Axes, class... Q>
  auto redistribute(const DeviceMesh<Device, Axes...>& mesh, Placements<Q...>) const {
    return redistribute(mesh, Q{}...);
  }

  /// Starts a redistribution and returns at once; the first use of the result waits for it.
  ///
  /// The elements must not change until then.
  /// @collective every rank of the mesh, in the same order as its other asynchronous calls
  template <class... Q>
  auto redistribute_async(Q...) const {
    static_assert(!(is_device_mesh<Q> || ...),
                  "cleave: redistribute_async stays on the mesh of the tensor; to another mesh, "
                  "call redistribute");
    if constexpr (!(is_device_mesh<Q> || ...))
      return detail::start_redistribute<decltype(detail::target_placements<Rank, Mesh, Q...>())>(
          *this);
  }
  template <class... Q>
  auto redistribute_async(Placements<Q...>) const {
    return redistribute_async(Q{}...);
  }

  /// The whole array on every rank.
  /// @collective every rank of the mesh
  local_type full_tensor(CallSite where = CallSite::here()) const {
    const detail::PlaceScope scope(where);
    return detail::redistribute_to<replicated_t<Mesh::axis_count>>(*this, "full_tensor").to_local();
  }

  /// The element of an array of size 1, on every rank.
  /// @collective every rank of the mesh
  /// @throws Error if the size is not 1, and on a rank outside the mesh
  T item(CallSite where = CallSite::here()) const {
    if (size() != 1)
      throw Error("item", "the tensor has " + std::to_string(size()) + " elements, not one",
                  context());
    if (!mesh_.is_member())
      throw Error("item", "this rank is outside the mesh and holds no element", context());
    return full_tensor(where).item();
  }

  /// Shape, placements, mesh and rank, for error messages.
  ErrorContext context() const {
    return {to_string(Shape(shape_)), to_string(layout), mesh_.describe(),
            mesh_.state().world_rank()};
  }

 private:
  DTensor(local_type local, Mesh mesh, const Extents& shape)
      : local_(std::move(local)), mesh_(std::move(mesh)), shape_(shape) {}

  local_type local_;
  Mesh mesh_;
  Extents shape_;
};

/// A name for the type of a DTensor, for members and parameters: one placement per axis, dimensions
/// counted from the front or from the end.
///
///     struct Flow { placed_t<double, 2, Mesh, Shard<0>, Shard<-1>> density; };
template <Element T, int Rank, class Mesh, class... P>
using placed_t = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;

namespace detail {

/// Redistributes over the groups of `mesh`: x's mesh or a duplicate of it.
template <class To, class T, int Rank, class Mesh, class P>
DTensor<T, Rank, Mesh, To> redistribute_over(const MeshState& mesh,
                                             const DTensor<T, Rank, Mesh, P>& x,
                                             const char* operation, bool reuse) {
  constexpr const RedistributionSpec& spec = redistribution_spec<P, To, Rank>;
  auto local = redistribute_local(x.to_local(), spec, mesh, x.shape(), operation, reuse);
  if (!reuse) local = unalias(std::move(local), x.to_local());
  return DTensor<T, Rank, Mesh, To>::unchecked(std::move(local), x.mesh(), x.shape());
}

template <class To, class T, int Rank, class Mesh, class P>
DTensor<T, Rank, Mesh, To> redistribute_to(const DTensor<T, Rank, Mesh, P>& x,
                                           const char* operation, bool reuse) {
  if constexpr (std::is_same_v<P, To>) return x;
  else return redistribute_over<To>(x.mesh().state(), x, operation, reuse);
}

template <class To, class T, int Rank, class Mesh, class P>
Async<DTensor<T, Rank, Mesh, To>> start_redistribute(const DTensor<T, Rank, Mesh, P>& x) {
  const MeshState& mesh = x.mesh().state();
  const bool member = mesh.is_member();  // a rank outside the mesh has nothing to do or wait for
  return start_async(typename Mesh::device_type{}, member ? mesh.group() : *mesh.world(),
                     [x, duplicate = member ? mesh.duplicate() : nullptr] {
                       if constexpr (std::is_same_v<P, To>) return x;
                       else
                         return redistribute_over<To>(
                             duplicate != nullptr ? *duplicate : x.mesh().state(), x,
                             "redistribute_async", false);
                     });
}

template <class To, class T, int Rank, class Mesh, class P, class Target>
DTensor<T, Rank, Target, To> redistribute_across(const DTensor<T, Rank, Mesh, P>& x,
                                                 const Target& mesh) {
  Shape shape(x.shape());
  const auto& local = x.to_local();
  redistribution::Block block = redistribution::cross_redistribute<typename Mesh::device_type>(
      layout_of<P, Rank>, layout_of<To, Rank>, {local.storage(), local.view()}, x.mesh().state(),
      mesh.state(), shape);
  return DTensor<T, Rank, Target, To>::unchecked(
      tensor_of<Tensor<T, Rank, typename Mesh::device_type>>(std::move(block)), mesh,
      to_array<Rank>(shape));
}

}  // namespace detail

}  // namespace cleave
