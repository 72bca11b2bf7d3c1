// Redistributes several tensors together, with fewer synchronisations than one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/dtensor/dtensor.hpp>

namespace cleave::inline v0 {

/// A tensor and its target placements. @see to
template <class X, class To>
struct Redistribution {
  X tensor;
  [[no_unique_address]] detail::StoredLayout<detail::is_open_list<To>> target{};
};

/// One argument of `redistribute_all`: `to(x, Shard<0>{}, Replicate{})`.
template <class T, int Rank, class Mesh, class P, class... Q>
auto to(const DTensor<T, Rank, Mesh, P>& x, Q... q) {
  using To = decltype(detail::target_placements<Rank, Mesh, Q...>());
  const auto target = detail::stored_of<To, Rank>(Placements<Q...>(q...));
  if constexpr (detail::is_open_list<To>)
    if (x.mesh().is_member())
      detail::require_fitting(target.layout, Shape(x.shape()), x.mesh().state(),
                              "redistribute_all");
  return Redistribution<DTensor<T, Rank, Mesh, P>, To>{x, target};
}

namespace detail {

/// The type-erased form of one argument. @param x  must outlive the result
template <class To, class T, int Rank, class Mesh, class P>
redistribution::ListEntry entry_of(const DTensor<T, Rank, Mesh, P>& x, const Layout& target) {
  const RedistributionSpec& spec = spec_of<P, To, Rank>(x.actual_layout(), target);
  const auto& local = x.to_local();
  return {spec.plan,
          spec.source,
          spec.target,
          {local.storage(), local.view()},
          {x.mesh().state(), Shape(x.shape()), "redistribute_all"}};
}

template <class A, class B>
[[noreturn]] void throw_different_meshes(const A& a, const B& b) {
  throw Error("redistribute_all", "the tensors are on different meshes",
              {.mesh = a.mesh().describe() + " and " + b.mesh().describe(),
               .rank = a.mesh().state().world_rank()});
}

template <class To, class T, int Rank, class Mesh, class P>
auto result_of(const DTensor<T, Rank, Mesh, P>& x, const redistribution::Block& block,
               const Layout& target) {
  using Local = Tensor<T, Rank, typename Mesh::device_type>;
  auto local = tensor_of<Local>(block);
  if constexpr (!std::is_same_v<P, To> || detail::is_open_list<To>)
    local = unalias(std::move(local), x.to_local());
  return DTensor<T, Rank, Mesh, To>::unchecked(std::move(local), x.mesh(), x.shape(), target);
}

}  // namespace detail

/// Redistributes several tensors of one mesh, whose element types and shapes may differ.
///
///     auto [a, b] = redistribute_all(to(x, Replicate{}), to(y, Shard<1>{}));
///
/// The k-th steps of all plans that run over the same axes form one round: the values equal those
/// of separate redistributions, with fewer synchronisations. In host memory, tensors of up to 16
/// KiB are packed into one collective, reductions into one per element type and operation; how is
/// computed once per list of layouts, extents and types, and kept. All-reduces of up to 256 KiB
/// with the same element type and operation are packed into one everywhere.
///
/// @return     a tuple of DTensors
/// @collective every rank of the mesh
/// @throws Error if the tensors are on different meshes
template <class... X, class... To>
auto redistribute_all(const Redistribution<X, To>&... entry) {
  static_assert(sizeof...(X) > 0, "cleave: redistribute_all requires at least one tensor");
  const auto& first = std::get<0>(std::tie(entry...)).tensor;
  const auto check = [&](const auto& x) {
    if (!(x.mesh().state() == first.mesh().state())) detail::throw_different_meshes(first, x);
  };
  (check(entry.tensor), ...);
  if (!first.mesh().is_member())
    return std::tuple(
        DTensor<typename X::value_type, X::dims, typename X::mesh_type, To>::unchecked(
            entry.tensor.to_local(), entry.tensor.mesh(), entry.tensor.shape(),
            detail::layout_in<To, X::dims>(entry.target))...);
  using Device = typename std::remove_cvref_t<decltype(first)>::device_type;
  std::array<redistribution::ListEntry, sizeof...(X)> entries{
      detail::entry_of<To>(entry.tensor, detail::layout_in<To, X::dims>(entry.target))...};
  redistribution::run_all<Device>(entries);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple(detail::result_of<To>(entry.tensor, entries[I].block,
                                            detail::layout_in<To, X::dims>(entry.target))...);
  }(std::index_sequence_for<X...>{});
}

namespace detail {

template <class T, int Rank, class Mesh, class P, class... Q>
auto redistribute_list(const std::vector<DTensor<T, Rank, Mesh, P>>& tensors,
                       const Placements<Q...>& placements) {
  using From = DTensor<T, Rank, Mesh, P>;
  using To = decltype(target_placements<Rank, Mesh, Q...>());
  const auto stored = stored_of<To, Rank>(placements);
  const Layout& target = layout_in<To, Rank>(stored);
  std::vector<DTensor<T, Rank, Mesh, To>> results;
  results.reserve(tensors.size());
  std::vector<redistribution::ListEntry> entries;
  entries.reserve(tensors.size());
  for (const From& x : tensors) {
    if (!(x.mesh().state() == tensors[0].mesh().state())) throw_different_meshes(tensors[0], x);
    if (!x.mesh().is_member()) continue;
    if constexpr (detail::is_open_list<To>)
      require_fitting(target, Shape(x.shape()), x.mesh().state(), "redistribute_all");
    entries.push_back(entry_of<To>(x, target));
  }
  redistribution::run_all<typename Mesh::device_type>(entries);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (entries.empty())
      results.push_back(DTensor<T, Rank, Mesh, To>::unchecked(
          tensors[i].to_local(), tensors[i].mesh(), tensors[i].shape(), target));
    else results.push_back(result_of<To>(tensors[i], entries[i].block, target));
  return results;
}

}  // namespace detail

/// The same for any number of tensors of one type.
///
///     const auto whole = redistribute_all(weights, Replicate{}, Replicate{});
///
/// @return     the tensors under the given placements, one per axis of the mesh
/// @collective every rank of the mesh, with the same number of tensors
/// @throws Error if the tensors are on different meshes
template <class T, int Rank, class Mesh, class P, PlacementType... Q>
auto redistribute_all(const std::vector<DTensor<T, Rank, Mesh, P>>& tensors, Q... q) {
  return detail::redistribute_list(tensors, Placements<Q...>(q...));
}

}  // namespace cleave::inline v0
