// The placements of one DTensor as a value: a constant of its type, unless the program chooses
// blocks or cut points at run time.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0::detail {

/// What a DTensor stores of its placements: nothing if its type says all.
template <bool Open>
struct StoredLayout {
  constexpr StoredLayout() = default;
  constexpr explicit StoredLayout(const Layout&) {}
};
template <>
struct StoredLayout<true> {
  Layout layout;
  constexpr explicit StoredLayout(const Layout& from) : layout(from) {}
};

/// The layout of `List` for a tensor of `Dims` dimensions, with the numbers that are stored.
template <class List, int Dims, bool Open>
constexpr const Layout& layout_in(const StoredLayout<Open>& stored) {
  if constexpr (Open) return stored.layout;
  else return layout_of<List, Dims>;
}

/// Stores the blocks and cut points of some placements, whose normalised types are `List`.
template <class List, int Dims, class... P>
constexpr auto stored_of(const Placements<P...>& placements) {
  constexpr bool open = is_open_list<List>;
  if constexpr (open) return StoredLayout<true>(with_numbers(layout_of<List, Dims>, placements));
  else return StoredLayout<false>();
}

/// A list of placements with the blocks and cut points that a layout has, where the list leaves
/// them open.
template <class List>
constexpr List placements_as(const Layout& from) {
  List placements;
  if constexpr (requires { placements.numbers; }) {
    const Layout layout = layout_of<List, max_dims>.with_numbers_of(from);
    for (int a = 0; a < layout.axes; ++a)
      if (layout_of<List, max_dims>[a].is_open())
        placements.numbers[std::size_t(a)] = layout[a].number;
  }
  return placements;
}

/// Calls f with the placements of a list as separate arguments.
template <class F, class... P>
constexpr decltype(auto) with_each(const Placements<P...>& placements, const F& f) {
  if constexpr ((is_chosen_at_run_time<P> || ...)) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      const auto one = [](auto p, std::int32_t number) {
        if constexpr (is_chosen_at_run_time<decltype(p)>) p.number = number;
        return p;
      };
      return f(one(P{}, placements.numbers[I])...);
    }(std::index_sequence_for<P...>{});
  } else {
    return f(P{}...);
  }
}

/// @throws Error if blocks or cut points that were chosen at run time do not fit
inline void require_fitting(const Layout& layout, const Shape& shape, const MeshState& mesh,
                            const char* operation) {
  const std::string misfit = misfit_of_cuts(layout, shape, mesh.extents());
  if (!misfit.empty())
    throw Error(operation, misfit,
                {to_string(shape), to_string(layout), mesh.describe(), mesh.world_rank()});
}

}  // namespace cleave::inline v0::detail
