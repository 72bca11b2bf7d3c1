// Placements chosen at run time, by a text, from a few types.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/placement/placement_text.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The placements of all axes in short, dimensions as in the type.
template <class... P>
std::string short_text(Placements<P...>) {
  Layout layout;
  ((layout[layout.axes++] = PlacementTraits<P>::value(0)), ...);
  return cleave::short_text(layout);
}

template <class First, class... Rest, class F>
decltype(auto) choose_placement(const std::string& wanted, F& f, std::string choices) {
  const std::string text = short_text(First{});
  if (text == wanted) return f(First{});
  choices += (choices.empty() ? "" : " or ") + text;
  if constexpr (sizeof...(Rest) > 0)
    return choose_placement<Rest...>(wanted, f, std::move(choices));
  else throw Error("with_placement", "'" + wanted + "' is not " + choices);
}

template <class... P>
constexpr bool can_be_chosen(Placements<P...>) {
  return !((PlacementTraits<P>::value(0).is_partial() || is_chosen_at_run_time<P>) || ...);
}

}  // namespace detail

/// Calls f(placements) with the one of the `Choices`, each a `Placements<..>`, that a text names,
/// and returns its result, whose type must not depend on the choice.
///
///     with_placement<Placements<Shard<0>, Replicate>, Placements<Replicate, Shard<1>>>(
///         "S0,R", [&](auto placements) { step(x.redistribute(placements)); });
///
/// Only the choices are compiled.
/// @param text      one placement per axis, separated by commas: R (Replicate), S0 (Shard<0>), B0
///                  (Balanced<0>), C0:64 (BlockCyclic<0, 64>) or O1:0 (Owned<1, 0>), with
///                  dimensions as in the type; blanks are ignored. The same on all ranks, if f
///                  communicates
/// @throws Error    if it is none of the choices, with all of them
template <class... Choices, class F>
decltype(auto) with_placement(std::string_view text, F&& f) {
  static_assert(sizeof...(Choices) > 0 && (detail::is_placements<Choices> && ...),
                "cleave: with_placement requires choices: Placements<Shard<0>, Replicate>, ..");
  static_assert((detail::can_be_chosen(Choices{}) && ...),
                "cleave: a text chooses no Partial, which operations make, and no blocks or cut "
                "points that are chosen at run time, which are values themselves");
  std::string wanted;
  for (const char c : text)
    if (c != ' ') wanted += c;
  return detail::choose_placement<Choices...>(wanted, f, "");
}

}  // namespace cleave::inline v0
