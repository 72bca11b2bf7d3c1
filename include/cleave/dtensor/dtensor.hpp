// DTensor: a global array distributed over a mesh; its type says which part each rank holds.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/dtensor/stored_layout.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/placement/owned_boxes.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

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
                                           const char* operation, bool reuse = false,
                                           const Layout& target = layout_of<To, Rank>);

template <class To, class T, int Rank, class Mesh, class P, class Stored>
Async<DTensor<T, Rank, Mesh, To>> start_redistribute(const DTensor<T, Rank, Mesh, P>& x,
                                                     const Stored& target);

template <class To, class T, int Rank, class Mesh, class P, class Target, class Stored>
DTensor<T, Rank, Target, To> redistribute_across(const DTensor<T, Rank, Mesh, P>& x,
                                                 const Target& mesh, const Stored& target);

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
  static_assert(!detail::is_open_list<P> || detail::cuts_come_first(layout_of<P, Rank>),
                "cleave: Cuts<dim> must be on the first axis that shards the dimension: its points "
                "are global indices");
  static_assert(!is_float8<T> || !layout_of<P, Rank>.has_partial(),
                "cleave: floats of 8 bits are for storage, and cannot be Partial");

 public:
  using value_type = T;
  using mesh_type = Mesh;
  using device_type = typename Mesh::device_type;
  using placements_type = P;
  using local_type = Tensor<T, Rank, device_type>;
  using Extents = std::array<index_t, std::size_t(Rank)>;
  static constexpr int dims = Rank;
  /// The placements as a value, without what is chosen at run time. @see actual_layout
  static constexpr Layout layout = layout_of<P, Rank>;
  /// Whether blocks or cut points are chosen at run time.
  static constexpr bool is_open = detail::is_open_list<P>;

  /// Makes a DTensor from local elements that are already placed as the type says, unchecked.
  ///
  /// @param shape  global extents
  /// @collective   none
  /// @see from_local, which checks
  static DTensor unchecked(local_type local, Mesh mesh, const Extents& shape) {
    static_assert(!is_open,
                  "cleave: this function does not support blocks and cut points that are chosen at "
                  "run time; redistribute the tensor to Shard first");
    return DTensor(std::move(local), std::move(mesh), shape, Stored(layout));
  }
  /// The same with the blocks and cut points of other placements, of the same kinds where the type
  /// leaves them open.
  static DTensor unchecked(local_type local, Mesh mesh, const Extents& shape, const Layout& from) {
    if constexpr (is_open)
      return DTensor(std::move(local), std::move(mesh), shape,
                     Stored(layout.with_numbers_of(from)));
    else return DTensor(std::move(local), std::move(mesh), shape, Stored(layout));
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
  constexpr P placements() const noexcept { return detail::placements_as<P>(actual_layout()); }
  /// The placements as a value, with the blocks and cut points that were chosen at run time.
  constexpr const Layout& actual_layout() const noexcept {
    if constexpr (is_open) return stored_.layout;
    else return layout;
  }

  /// The local part of this rank: shares the storage, neither communicates nor reduces partials.
  const local_type& to_local() const noexcept { return local_; }
  /// The global indices of the local elements; empty on a rank outside the mesh.
  Box local_box() const {
    static_assert(layout.is_box(),
                  "cleave: the part of a BlockCyclic tensor is no box: use each_local_box, or "
                  "redistribute the tensor to Shard first");
    if (!mesh_.is_member()) return Box::of(Shape::filled(Rank, 0));
    return owned_box(actual_layout(), Shape(shape_), mesh_.extents(), mesh_.coordinate());
  }
  /// Calls f(global indices, the same elements as a box of `to_local()`) for boxes that together
  /// are the local part: one, or one per product of blocks of BlockCyclic. Not called outside the
  /// mesh.
  template <class F>
  void each_local_box(const F& f) const {
    if (mesh_.is_member())
      each_owned_box(actual_layout(), Shape(shape_), mesh_.extents(), mesh_.coordinate(), f);
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
  auto redistribute(Q... q) const& {
    using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
    if constexpr (detail::is_open_list<To>)
      return detail::redistribute_to<To>(
          *this, "redistribute", false,
          detail::with_numbers(layout_of<To, Rank>, Placements<Q...>(q...)));
    else if constexpr (std::is_same_v<To, P>) return *this;
    else return detail::redistribute_to<To>(*this, "redistribute");
  }
  template <class... Q>
    requires(!(is_device_mesh<Q> || ...))
  auto redistribute(Q... q) && {
    using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
    if constexpr (detail::is_open_list<To>) return std::as_const(*this).redistribute(q...);
    else if constexpr (std::is_same_v<To, P>) return std::move(*this);
    else
      return detail::redistribute_to<To>(
          *this, "redistribute", !local_.shared() && is_allocated(device_type{}, local_.storage()));
  }
  template <class... Q>
  auto redistribute([[maybe_unused]] const Placements<Q...>& to) const& {
    if constexpr (!(detail::is_chosen_at_run_time<Q> || ...)) return redistribute(Q{}...);
    else return detail::with_each(to, [&](const auto&... q) { return redistribute(q...); });
  }
  template <class... Q>
  auto redistribute([[maybe_unused]] const Placements<Q...>& to) && {
    if constexpr (!(detail::is_chosen_at_run_time<Q> || ...))
      return std::move(*this).redistribute(Q{}...);
    else return std::as_const(*this).redistribute(to);
  }

  /// The same global array on another mesh of the same world: other ranks, axes or extents.
  ///
  /// A rank that is in only one of the meshes holds an empty part in the other.
  /// @collective every rank of either mesh
  /// @cost       for partials one reduce-scatter on this mesh; then receives what this rank
  ///             lacks; allocates the result
  /// @throws Error if the meshes were not made from the same World
  template <class Device, class... Axes, class... Q>
  auto redistribute(const DeviceMesh<Device, Axes...>& mesh, Q... q) const {
    using Target = DeviceMesh<Device, Axes...>;
    static_assert(std::is_same_v<Device, device_type>,
                  "cleave: the meshes of a redistribution must have the same device");
    using To = decltype(detail::target_placements<Rank, Target, Q...>());
    return detail::redistribute_across<To>(*this, mesh,
                                           detail::stored_of<To, Rank>(Placements<Q...>(q...)));
  }
  template <class Device, class... Axes, class... Q>
  auto redistribute(const DeviceMesh<Device, Axes...>& mesh, const Placements<Q...>& to) const {
    return detail::with_each(to, [&](const auto&... q) { return redistribute(mesh, q...); });
  }

  /// Starts a redistribution and returns at once; the first use of the result waits for it.
  ///
  /// The elements must not change until then.
  /// @collective every rank of the mesh, in the same order as its other asynchronous calls
  template <class... Q>
  auto redistribute_async(Q... q) const {
    static_assert(!(is_device_mesh<Q> || ...),
                  "cleave: redistribute_async stays on the mesh of the tensor; to another mesh, "
                  "call redistribute");
    if constexpr (!(is_device_mesh<Q> || ...)) {
      using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
      return detail::start_redistribute<To>(*this,
                                            detail::stored_of<To, Rank>(Placements<Q...>(q...)));
    }
  }
  template <class... Q>
  auto redistribute_async(const Placements<Q...>& to) const {
    return detail::with_each(to, [&](const auto&... q) { return redistribute_async(q...); });
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
    return {to_string(Shape(shape_)), to_string(actual_layout()), mesh_.describe(),
            mesh_.state().world_rank()};
  }

 private:
  using Stored = detail::StoredLayout<is_open>;

  DTensor(local_type local, Mesh mesh, const Extents& shape, const Stored& stored)
      : local_(std::move(local)), mesh_(std::move(mesh)), shape_(shape), stored_(stored) {}

  local_type local_;
  Mesh mesh_;
  Extents shape_;
  [[no_unique_address]] Stored stored_;
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
                                             const char* operation, bool reuse,
                                             const Layout& target) {
  auto local = redistribute_local(x.to_local(), spec_of<P, To, Rank>(x.actual_layout(), target),
                                  mesh, x.shape(), operation, reuse);
  if (!reuse) local = unalias(std::move(local), x.to_local());
  return DTensor<T, Rank, Mesh, To>::unchecked(std::move(local), x.mesh(), x.shape(), target);
}

template <class To, class T, int Rank, class Mesh, class P>
DTensor<T, Rank, Mesh, To> redistribute_to(const DTensor<T, Rank, Mesh, P>& x,
                                           const char* operation, bool reuse,
                                           const Layout& target) {
  if constexpr (detail::is_open_list<To>) {
    if constexpr (std::is_same_v<P, To>)
      if (x.actual_layout() == target) return x;
    if (x.mesh().is_member())
      require_fitting(target, Shape(x.shape()), x.mesh().state(), operation);
    return redistribute_over<To>(x.mesh().state(), x, operation, reuse, target);
  } else if constexpr (std::is_same_v<P, To>) return x;
  else return redistribute_over<To>(x.mesh().state(), x, operation, reuse, target);
}

template <class To, class T, int Rank, class Mesh, class P, class Stored>
Async<DTensor<T, Rank, Mesh, To>> start_redistribute(const DTensor<T, Rank, Mesh, P>& x,
                                                     const Stored& target) {
  const MeshState& mesh = x.mesh().state();
  if constexpr (detail::is_open_list<To>)
    if (mesh.is_member())
      require_fitting(target.layout, Shape(x.shape()), mesh, "redistribute_async");
  const bool member = mesh.is_member();  // a rank outside the mesh has nothing to do or wait for
  return start_async(typename Mesh::device_type{}, member ? mesh.group() : *mesh.world(),
                     [x, target, duplicate = member ? mesh.duplicate() : nullptr] {
                       if constexpr (std::is_same_v<P, To> && !detail::is_open_list<To>) return x;
                       else
                         return redistribute_over<To>(
                             duplicate != nullptr ? *duplicate : x.mesh().state(), x,
                             "redistribute_async", false, layout_in<To, Rank>(target));
                     });
}

template <class To, class T, int Rank, class Mesh, class P, class Target, class Stored>
DTensor<T, Rank, Target, To> redistribute_across(const DTensor<T, Rank, Mesh, P>& x,
                                                 const Target& mesh, const Stored& target) {
  Shape shape(x.shape());
  const auto& local = x.to_local();
  redistribution::Block block = redistribution::cross_redistribute<typename Mesh::device_type>(
      x.actual_layout(), layout_in<To, Rank>(target), {local.storage(), local.view()},
      x.mesh().state(), mesh.state(), shape);
  return DTensor<T, Rank, Target, To>::unchecked(
      tensor_of<Tensor<T, Rank, typename Mesh::device_type>>(std::move(block)), mesh,
      to_array<Rank>(shape), layout_in<To, Rank>(target));
}

}  // namespace detail

}  // namespace cleave::inline v0
