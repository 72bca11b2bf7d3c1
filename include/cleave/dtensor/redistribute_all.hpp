// Several tensors redistributed together: fewer synchronisations than one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>

namespace cleave {

/// A tensor and the placements it is to get. @see to
template <class X, class To>
struct Redistribution {
  X tensor;
};

/// One part of a `redistribute_all`: `to(x, Shard<0>{}, Replicate{})`.
template <class T, int Rank, class Mesh, class P, class... Q>
auto to(const DTensor<T, Rank, Mesh, P>& x, Q...) {
  using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
  return Redistribution<DTensor<T, Rank, Mesh, P>, To>{x};
}

namespace detail {

/// One part without its types. @param part  must outlive the result
template <class T, int Rank, class Mesh, class P, class To>
redistribution::Part part_of(const Redistribution<DTensor<T, Rank, Mesh, P>, To>& part) {
  constexpr const Route& route =
      route_of<layout_of<P, Rank>.packed(), layout_of<To, Rank>.packed(), Mesh::axis_count, Rank>;
  const auto& local = part.tensor.local();
  return {route.plan,
          route.source,
          route.target,
          {local.storage(), local.view()},
          {part.tensor.mesh().state(), Shape(part.tensor.shape()), "redistribute_all"}};
}

template <class T, int Rank, class Mesh, class P, class To>
auto result_of(const Redistribution<DTensor<T, Rank, Mesh, P>, To>& part,
               const redistribution::Block& block) {
  using Local = Tensor<T, Rank, typename Mesh::device_type>;
  auto local = tensor_of<Local>(block);
  if constexpr (!std::is_same_v<P, To>) local = apart(std::move(local), part.tensor.local());
  return DTensor<T, Rank, Mesh, To>::unchecked(std::move(local), part.tensor.mesh(),
                                               part.tensor.shape());
}

}  // namespace detail

/// Redistributes several tensors of one mesh, whose element types and shapes may differ.
///
///     auto [a, b] = redistribute_all(to(x, Replicate{}), to(y, Shard<1>{}));
///
/// The first steps of all their plans that run over the same axes are one round, then the second
/// ones, ..: the values are those of one after the other, the synchronisations are fewer.
///
/// @return     a tuple of DTensors
/// @collective every rank of the mesh
/// @throws Error if the tensors are on different meshes
template <class... X, class... To>
auto redistribute_all(const Redistribution<X, To>&... part) {
  static_assert(sizeof...(X) > 0, "cleave: redistribute_all needs a tensor");
  const auto& first = std::get<0>(std::tie(part...)).tensor;
  const auto check = [&](const auto& x) {
    if (!(x.mesh().state() == first.mesh().state()))
      throw Error("redistribute_all", "the tensors are on different meshes",
                  {.mesh = first.mesh().describe() + " and " + x.mesh().describe(),
                   .rank = first.mesh().state().world_rank()});
  };
  (check(part.tensor), ...);
  if (!first.mesh().is_member())
    return std::tuple(
        DTensor<typename X::value_type, X::dims, typename X::mesh_type, To>::unchecked(
            part.tensor.local(), part.tensor.mesh(), part.tensor.shape())...);
  using Device = typename std::remove_cvref_t<decltype(first)>::device_type;
  std::array<redistribution::Part, sizeof...(X)> parts{detail::part_of(part)...};
  redistribution::run_all<Device>(parts);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple(detail::result_of(part, parts[I].block)...);
  }
  (std::index_sequence_for<X...>{});
}

}  // namespace cleave
