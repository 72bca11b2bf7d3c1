// from_local: makes one global array of local tensors that the ranks already hold.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/dtensor/dtensor.hpp>

namespace cleave::inline v0 {

namespace detail {

/// A bool to which numbers do not convert: otherwise a braced shape could become options.
struct YesOrNo {
  template <std::same_as<bool> B>
  constexpr YesOrNo(B b) : value(b) {}
  constexpr operator bool() const { return value; }
  bool value;
};

}  // namespace detail

/// Options of `from_local`.
struct FromLocalOptions {
  /// Compare the shapes, element types and placements of all ranks (always done if the global shape
  /// is not given), and broadcast replicas from the first rank of their axes.
  detail::YesOrNo run_check = false;
};

namespace detail {

/// A Tensor, or a value that tracks one.
template <class X>
concept LocalArray = !is_dtensor<X> && requires {
  typename X::device_type;
  { X::dims } -> std::convertible_to<int>;
};
template <class X>
using ExtentsOf = std::array<index_t, std::size_t(X::dims)>;

/// The arguments of a rank to `from_local` as 64-bit numbers, for an all-gather.
struct LocalPart {
  std::array<index_t, std::size_t(max_dims)> extents{};
  index_t dims = 0;
  index_t dtype = 0;
  std::array<std::uint64_t, std::size_t(max_axes)> placements{};  ///< codes, without cut points
  std::uint64_t cuts = 0;                                         ///< checksum of the cut points
  index_t global_is_given = 0;
  std::array<index_t, std::size_t(max_dims)> global{};

  /// Whether the arguments of two ranks describe the same global array.
  bool fits(const LocalPart& other) const {
    return dims == other.dims && dtype == other.dtype && placements == other.placements &&
           cuts == other.cuts && global_is_given == other.global_is_given && global == other.global;
  }
};

/// "float32 [2, 3] under (Shard(0))", followed by the global shape if it was given.
inline std::string describe(const LocalPart& part, int axes) {
  const auto shape_of = [&](const auto& extents) {
    Shape shape(extents);
    shape.dims = int(part.dims);
    return shape;
  };
  std::string text = std::string(name_of(DType(part.dtype))) + " " +
                     to_string(shape_of(part.extents)) + " under " +
                     to_string(Layout::of_codes(part.placements, axes));
  if (part.cuts != 0) text += " with cut points of checksum " + std::to_string(part.cuts);
  if (part.global_is_given != 0) text += " of " + to_string(shape_of(part.global));
  return text;
}

/// The global shape to which the local extents add up.
inline Shape sum_of_extents(const std::vector<LocalPart>& parts, const Layout& layout,
                            const MeshState& mesh, int dims) {
  Shape shape = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) {
    const AxisMask sharding = layout.sharding_axes(d);
    // add the extents of ranks with coordinate 0 on all axes that do not shard d
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const Shape at = coordinate_of(mesh.extents(), index_t(r));
      bool counts = true;
      for (int a = 0; a < layout.axes; ++a) counts = counts && ((sharding >> a & 1u) || at[a] == 0);
      if (counts) shape[d] += parts[r].extents[std::size_t(d)];
    }
  }
  return shape;
}

/// Sets the cut points of axes that have none to those that the local extents make.
inline void measure_cuts(const std::vector<LocalPart>& parts, const MeshState& mesh,
                         Layout& layout) {
  for (int a = 0; a < layout.axes; ++a) {
    if (layout[a].kind != PlacementKind::cuts || layout[a].number != 0) continue;
    const int d = layout[a].dim;
    std::vector<index_t> points(std::size_t(mesh.extents()[a]) + 1, 0);
    for (std::size_t r = 0; r < parts.size(); ++r) {  // as in sum_of_extents
      const Shape at = coordinate_of(mesh.extents(), index_t(r));
      bool counts = true;
      for (int b = 0; b < layout.axes; ++b) counts = counts && (layout[b].shards(d) || at[b] == 0);
      if (counts) points[std::size_t(at[a]) + 1] += parts[r].extents[std::size_t(d)];
    }
    for (std::size_t i = 1; i < points.size(); ++i) points[i] += points[i - 1];
    layout[a].number = number_of_points(points);
  }
}

/// The global shape: the given one, or the sum of the local extents.
///
/// @param layout  receives the cut points of axes that have none
/// @param given  null to compute the shape from the local extents
/// @collective   every rank of the mesh
/// @throws Error on every rank if the arguments of the ranks disagree, or the extents of a rank
///         differ from those that its placements assign to it
inline Shape agree_on_parts(const View& local, Layout& layout, const Shape* given,
                            const MeshState& mesh) {
  Layout kinds = layout;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].kind == PlacementKind::cuts) kinds[a].number = 0;
  LocalPart mine{local.extents.values, local.extents.dims, index_t(local.dtype), kinds.codes()};
  if (!(kinds == layout)) mine.cuts = layout.checksum();
  if (given != nullptr) {
    mine.global_is_given = 1;
    mine.global = given->values;
  }
  const std::vector<LocalPart> all = gather_values(mesh.group().host(), mine, "from_local");
  const auto rank = [&](std::size_t r) { return "rank " + std::to_string(mesh.world_ranks()[r]); };
  for (std::size_t r = 1; r < all.size(); ++r)
    if (!all[r].fits(all[0]))
      throw Error("from_local",
                  rank(0) + " passed " + describe(all[0], layout.axes) + ", " + rank(r) +
                      " passed " + describe(all[r], layout.axes),
                  {.mesh = mesh.describe(), .rank = mesh.world_rank()});
  const int dims = local.extents.dims;
  const Shape shape = given != nullptr ? *given : sum_of_extents(all, layout, mesh, dims);
  measure_cuts(all, mesh, layout);
  if (const std::string misfit = misfit_of_cuts(layout, shape, mesh.extents()); !misfit.empty())
    throw Error("from_local", misfit,
                {to_string(shape), to_string(layout), mesh.describe(), mesh.world_rank()});
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Shape expected =
        local_shape(layout, shape, mesh.extents(), coordinate_of(mesh.extents(), index_t(r)));
    Shape passed(all[r].extents);
    passed.dims = dims;
    if (!(expected == passed))
      throw Error(
          "from_local",
          std::string(given != nullptr ? "the global tensor is " : "the local tensors add up to ") +
              to_string(shape) + ", of which " + rank(r) + " owns " + to_string(expected) +
              ", but it passed " + to_string(passed),
          {to_string(shape), to_string(layout), mesh.describe(), mesh.world_rank()});
  }
  return shape;
}

/// Broadcasts replicas from the first rank of the replicating axes.
template <class Device>
void broadcast_replicas(const View& local, const Layout& layout, const MeshState& mesh,
                        const char* operation) {
  const AxisMask replicated =
      layout.axes_where([](const Placement& p) { return p.is_replicate(); });
  if (mesh.size(replicated) == 1) return;
  communicator_on(Device{}, *mesh.group(replicated))
      .run(Collective::broadcast(local, local, 0).named(operation, mesh.label(replicated).c_str()));
}

/// The same in a copy: replaces `local` by a new tensor.
template <class T, int Rank, class Device>
void replace_replicas(Tensor<T, Rank, Device>& local, const Layout& layout, const MeshState& mesh) {
  local = local.clone();
  broadcast_replicas<Device>(local.view(), layout, mesh, "from_local");
}

}  // namespace detail

/// Makes one global array of local tensors; its shape follows from theirs.
///
/// Always compares the arguments of all ranks and checks their extents against the
/// placements: uneven parts that do not follow them would gather wrongly. `Cuts<d>{}` without
/// points takes parts of any extents, and gets the points that these make. With `run_check`,
/// replicas are broadcast from the first rank of their axes, into a copy: the caller's tensors do
/// not change.
///
/// @collective every rank of the mesh
/// @cost       one small all-gather; with `run_check` a copy and a broadcast of the replicas
/// @throws Error on every rank, naming ranks whose types, placements or numbers of dimensions
///         differ, or the first rank whose extents are not those of the part that it owns
template <class T, int Rank, class Mesh, class... P>
auto from_local(Tensor<T, Rank, typename Mesh::device_type> local, const Mesh& mesh,
                [[maybe_unused]] const Placements<P...>& placements,
                FromLocalOptions options = {}) {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: from_local takes exactly one placement per mesh axis");
  using Result = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  Layout layout = Result::layout;
  if constexpr (Result::is_open) layout = detail::with_numbers(layout, placements);
  if (!mesh.is_member()) return Result::unchecked(typename Result::local_type(), mesh, {}, layout);
  const Shape shape = detail::agree_on_parts(local.view(), layout, nullptr, mesh.state());
  if (options.run_check) detail::replace_replicas(local, layout, mesh.state());
  return Result::unchecked(std::move(local), mesh, to_array<Rank>(shape), layout);
}
/// The same with a given global shape: checks this rank's part only, without communication, unless
/// `run_check`, or `Cuts` without points, requests the checks of the form without a shape.
///
///     from_local(part, mesh, Shard<0>{}, Replicate{}, {1797, 64})
///
/// @collective with `run_check`, or `Cuts` without points: every rank of the mesh
/// @throws Error if the local extents are not those that this rank owns, or a global extent is
///         negative; with `run_check` on every rank
template <class T, int Rank, class Mesh, class... P>
auto from_local(Tensor<T, Rank, typename Mesh::device_type> local, const Mesh& mesh,
                [[maybe_unused]] const Placements<P...>& placements,
                const std::array<index_t, std::size_t(Rank)>& shape,
                FromLocalOptions options = {}) {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: from_local takes exactly one placement per mesh axis");
  using Result = DTensor<T, Rank, Mesh, normalized_t<Placements<P...>, Rank>>;
  detail::checked_bytes(shape.data(), Rank, sizeof(T));
  Layout layout = Result::layout;
  if constexpr (Result::is_open) layout = detail::with_numbers(layout, placements);
  bool measures = false;  // cut points
  if constexpr (Result::is_open)
    measures = layout.axes_where([](const Placement& p) {
      return p.kind == PlacementKind::cuts && p.number == 0;
    }) != 0;
  if ((options.run_check || measures) && mesh.is_member()) {
    const Shape given(shape);
    detail::agree_on_parts(local.view(), layout, &given, mesh.state());
    if (options.run_check) detail::replace_replicas(local, layout, mesh.state());
  }
  const auto result = Result::unchecked(std::move(local), mesh, shape, layout);
  Shape owned = Shape::filled(Rank, 0);
  if (mesh.is_member()) {
    if constexpr (Result::is_open)
      detail::require_fitting(layout, Shape(shape), mesh.state(), "from_local");
    owned = local_shape(layout, Shape(shape), mesh.extents(), mesh.coordinate());
  }
  const Shape passed(result.to_local().shape());
  if (!(owned == passed))
    throw Error("from_local",
                "the local tensor is " + to_string(passed) + ", this rank owns " + to_string(owned),
                result.context());
  return result;
}

// The other forms are the same for tensors and for values that track one.

/// Placements as separate arguments.
template <detail::LocalArray X, class Mesh, PlacementType First, PlacementType... P>
auto from_local(X local, const Mesh& mesh, First first, P... p) {
  return from_local(std::move(local), mesh, Placements<First, P...>(first, p...));
}
/// The same with a given global shape, for meshes of up to four axes; for more, pass `Placements`.
template <detail::LocalArray X, class Mesh, PlacementType A>
auto from_local(X local, const Mesh& mesh, A a, const detail::ExtentsOf<X>& shape) {
  return from_local(std::move(local), mesh, Placements<A>(a), shape);
}
template <detail::LocalArray X, class Mesh, PlacementType A, PlacementType B>
auto from_local(X local, const Mesh& mesh, A a, B b, const detail::ExtentsOf<X>& shape) {
  return from_local(std::move(local), mesh, Placements<A, B>(a, b), shape);
}
template <detail::LocalArray X, class Mesh, PlacementType A, PlacementType B, PlacementType C>
auto from_local(X local, const Mesh& mesh, A a, B b, C c, const detail::ExtentsOf<X>& shape) {
  return from_local(std::move(local), mesh, Placements<A, B, C>(a, b, c), shape);
}
template <detail::LocalArray X, class Mesh, PlacementType A, PlacementType B, PlacementType C,
          PlacementType D>
auto from_local(X local, const Mesh& mesh, A a, B b, C c, D d, const detail::ExtentsOf<X>& shape) {
  return from_local(std::move(local), mesh, Placements<A, B, C, D>(a, b, c, d), shape);
}
/// Only a message: the argument is no tensor.
template <class X, class Mesh, class... P>
  requires(detail::call_level<X> < 0 && is_device_mesh<Mesh>)
void from_local(const X&, const Mesh&, const P&...) {
  static_assert(detail::call_level<X> >= 0,
                "cleave: from_local takes a Tensor: make a Tensor of the elements first");
}

/// Without placements every axis is Replicate.
template <detail::LocalArray X, class Mesh>
  requires is_device_mesh<Mesh>
auto from_local(X local, const Mesh& mesh, FromLocalOptions options = {}) {
  return from_local(std::move(local), mesh, replicated_t<Mesh::axis_count>{}, options);
}
template <detail::LocalArray X, class Mesh>
  requires is_device_mesh<Mesh>
auto from_local(X local, const Mesh& mesh, const detail::ExtentsOf<X>& shape,
                FromLocalOptions options = {}) {
  return from_local(std::move(local), mesh, replicated_t<Mesh::axis_count>{}, shape, options);
}

}  // namespace cleave::inline v0
