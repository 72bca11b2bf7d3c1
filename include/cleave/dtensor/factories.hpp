// zeros, ones, full, empty: every rank makes its own part without communication.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/tensor/margin.hpp>

namespace cleave::inline v0 {

namespace detail {

/// @param allocate  makes the local part of given extents
template <class T, std::size_t Rank, class Mesh, class Allocate, class... P>
auto make_placed(const index_t (&extents)[Rank], const Mesh& mesh, const Allocate& allocate,
                 [[maybe_unused]] P... p) {
  constexpr bool enough_dims = Rank <= std::size_t(max_dims);
  constexpr bool are_placements = (PlacementType<P> && ...);
  constexpr bool one_per_axis = sizeof...(P) == std::size_t(Mesh::axis_count);
  constexpr bool given = sizeof...(P) > 0;
  static_assert(enough_dims, "cleave: a tensor has 0 to 8 dimensions");
  static_assert(are_placements,
                "cleave: a factory takes placements: Shard<dim>{} or Replicate{}; they are types, "
                "so a program that chooses at run time branches between calls");
  static_assert(!are_placements || !given || one_per_axis,
                "cleave: a factory takes exactly one placement per mesh axis, or none: Replicate");
  if constexpr (enough_dims && are_placements && (!given || one_per_axis)) {
    using Placed = std::conditional_t<given, Placements<P...>, replicated_t<Mesh::axis_count>>;
    using Result = DTensor<T, int(Rank), Mesh, normalized_t<Placed, int(Rank)>>;
    static_assert(!Result::layout.has_partial(),
                  "cleave: a factory does not make Partial tensors; operations make partials");
    const auto shape = std::to_array(extents);
    checked_bytes(extents, int(Rank), sizeof(T));
    Layout layout = Result::layout;
    if constexpr (Result::is_open) layout = with_numbers(layout, Placed(p...));
    if (!mesh.is_member())
      return Result::unchecked(typename Result::local_type(), mesh, shape, layout);
    if constexpr (Result::is_open) require_fitting(layout, Shape(shape), mesh.state(), "factory");
    const Shape local = local_shape(layout, Shape(shape), mesh.extents(), mesh.coordinate());
    return Result::unchecked(allocate(to_array<int(Rank)>(local)), mesh, shape, layout);
  } else {
    // without a result type, compilers do not report follow-up errors in uses of the result
    return mesh.no_such_tensor;
  }
}

/// @param p  placements, and a margin at the end if wanted
template <class T, std::size_t Rank, class Mesh, class... P>
auto make_empty(const index_t (&extents)[Rank], const Mesh& mesh, P... p) {
  using Device = typename Mesh::device_type;
  if constexpr ((std::is_same_v<P, Margin> || ...)) {
    constexpr std::size_t count = sizeof...(P) - 1;
    const std::tuple<P...> all{p...};
    static_assert(std::is_same_v<std::tuple_element_t<count, std::tuple<P...>>, Margin>,
                  "cleave: a factory takes the margin behind the placements");
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return make_placed<T>(
          extents, mesh,
          [&](const auto& local) {
            return make_with_margin<T, int(Rank), Device>(local, std::get<count>(all));
          },
          std::get<I>(all)...);
    }(std::make_index_sequence<count>{});
  } else {
    return make_placed<T>(
        extents, mesh, [](const auto& local) { return Tensor<T, int(Rank), Device>(local); }, p...);
  }
}

}  // namespace detail

/// An uninitialised array: `empty<float>({64, 256}, mesh, Shard<0>{}, Replicate{})`.
///
/// @param placements  one per mesh axis, or none: Replicate on every axis; at the end may be a
/// `margin(2)`: room around the rank's
///                    part, into which stencils receive the neighbours' elements
/// @collective none
/// @throws Error if an extent is negative
template <Element T, std::size_t Rank, class Mesh, class... P>
auto empty(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return detail::make_empty<T>(extents, mesh, placements...);
}

/// An array filled with one value. @collective none
template <Element T, std::size_t Rank, class Mesh, class... P>
auto full(const index_t (&extents)[Rank], const T& value, const Mesh& mesh, P... placements) {
  auto result = detail::make_empty<T>(extents, mesh, placements...);
  result.to_local().fill_(value);
  return result;
}

/// An array of zeros. @collective none
template <Element T, std::size_t Rank, class Mesh, class... P>
auto zeros(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return full<T>(extents, T(0), mesh, placements...);
}

/// An array of ones. @collective none
template <Element T, std::size_t Rank, class Mesh, class... P>
auto ones(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return full<T>(extents, T(1), mesh, placements...);
}

}  // namespace cleave::inline v0
