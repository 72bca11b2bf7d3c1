// apply: computes stencils on local and distributed fields.
//
// A rank receives what its part of the result reads beyond its part of the fields, one message per
// neighbour for all fields, and computes the inner elements from the fields as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/stencil/edges.hpp>
#include <cleave/ops/stencil/halo.hpp>
#include <cleave/ops/stencil/repeat.hpp>
#include <cleave/ops/stencil/stencil_fields.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>

namespace cleave::inline v0 {

/// Names the tensors to which a stencil writes its results.
template <class... Y>
struct OutEach {
  std::tuple<const Y&...> targets;
};
template <AnyTensor Y, AnyTensor... More>
  requires(sizeof...(More) > 0)
constexpr OutEach<Y, More...> out(const Y& y, const More&... more) {
  return {{y, more...}};
}

namespace detail {

/// The extents that targets give to a result that is coarser or finer than the fields.
template <class Call, class... Y>
Shape target_extents(const std::tuple<const Y&...>& targets) {
  if constexpr (Call::is_aligned || sizeof...(Y) == 0) return {};
  else return Shape(std::get<0>(targets).shape());
}

/// Computes some steps of a stencil on Tensors.
template <int Steps, class S, class E, class... Y, class... X>
auto apply_local(const S& stencil, const E& of_domain, const std::tuple<const Y&...>& targets,
                 const X&... x) {
  using Call = StencilCall<S, X...>;
  const std::tuple<X...> operands{with_rows(x)...};
  StencilFields fields = stencil_fields<Call>(S::name, of_domain, std::tie(x...), operands);
  fields.part = fields.domain =
      stencil_domain(S::name, fields.window, fields.like, target_extents<Call>(targets),
                     context_of(first_tensor(x...)));
  const auto bound = bound_stencil(stencil, fields.window);
  if constexpr (Steps == 1) {
    fill_margins(fields);
    return stencil_results<Call>(bound, fields, operands, targets);
  } else {
    const RepeatPlan plan = plan_repeat(S::name, fields, Call::results(), Steps, Layout(),
                                        context_of(first_tensor(x...)));
    const auto before = compute_steps_before_last<Call>(bound, fields, plan, operands);
    return stencil_results<Call>(bound, fields, operands, targets);
  }
}

/// Checks the types, mesh and global extents of a target.
template <class S, class P, class Y, class First>
void check_placed_target(const Y& y, const First& first, const Shape& shape) {
  static_assert(is_dtensor<Y>, "cleave: the target of a stencil on DTensors must be a DTensor");
  static_cast<void>(target_is_placed_otherwise<S, P, typename Y::placements_type>{});
  if (!(y.mesh() == first.mesh()) || (y.mesh().is_member() && !(Shape(y.shape()) == shape)))
    throw Error(S::name, "the target and the result differ in mesh or extents", y.context());
  require_same_cuts(y, S::name, first.actual_layout());
}

/// Computes some steps of a stencil on DTensors with the same placements.
template <int Steps, class S, class E, class... Y, class... X>
auto apply_placed(const S& stencil, const E& of_domain, const std::tuple<const Y&...>& targets,
                  const X&... x) {
  using Call = StencilCall<S, X...>;
  using First = typename Call::First;
  using Mesh = typename First::mesh_type;
  using P = typename First::placements_type;
  const First& first = first_tensor(x...);
  const auto on_mesh_of_first = [&](const auto& operand) {
    if constexpr (is_dtensor<std::remove_cvref_t<decltype(operand)>>)
      if (!(operand.mesh() == first.mesh()))
        throw Error(S::name, "the fields are on different meshes", first.context());
  };
  (on_mesh_of_first(x), ...);
  const std::tuple operands{with_rows(local_part(x))...};
  StencilFields fields = stencil_fields<Call>(S::name, of_domain, std::tie(x...), operands);
  const MeshState& mesh = first.mesh().state();
  const auto bound = mesh.is_member() ? bound_stencil(stencil, fields.window) : stencil;
  RepeatPlan plan;
  if (mesh.is_member()) {
    fields.domain = stencil_domain(S::name, fields.window, fields.like,
                                   target_extents<Call>(targets), first.context());
    if constexpr (Steps == 1) {
      exchange_ghosts(S::name, fields, first.actual_layout(), mesh);
    } else {
      plan = plan_repeat(S::name, fields, Call::results(), Steps, first.actual_layout(),
                         first.context());
      exchange_ghosts_of_steps(S::name, fields, first.actual_layout(), mesh);
    }
  } else {
    fields.domain = Box::of(fields.window[fields.like].domain);
    fields.part = Box::of(Shape::filled(Call::dims, 0));
  }
  if constexpr (sizeof...(Y) > 0) {
    std::apply(
        [&](const Y&... y) { (check_placed_target<S, P>(y, first, fields.domain.extents()), ...); },
        targets);
  }
  [[maybe_unused]] const auto before = [&] {
    if constexpr (Steps > 1) return compute_steps_before_last<Call>(bound, fields, plan, operands);
    else return 0;
  }();
  auto locals = stencil_results<Call>(bound, fields, operands, targets);
  return std::apply(
      [&](auto&... local) {
        return std::tuple{
            DTensor<typename std::remove_cvref_t<decltype(local)>::value_type, Call::dims, Mesh,
                    P>::unchecked(std::move(local), first.mesh(),
                                  to_array<Call::dims>(fields.domain.extents()),
                                  first.actual_layout())...};
      },
      locals);
}

/// Calls a stencil. @return the results as a tuple
template <class Called, class E, class... Y, class... X>
auto call_stencil(const Called& called, const E& of_domain, const std::tuple<const Y&...>& targets,
                  const X&... x) {
  constexpr int steps = steps_of<Called>;
  const auto& stencil = single_step(called);
  using S = std::remove_cvref_t<decltype(stencil)>;
  using Call = StencilCall<S, X...>;
  if constexpr (Call::check_operands() && Call::check_reach() &&
                check_repeat<steps, Call, E, X...>()) {
    using First = typename Call::First;
    if constexpr (is_dtensor<First>) {
      using P = without_partials_t<typename First::placements_type>;
      const auto placed = [&](const auto& operand) -> decltype(auto) {
        if constexpr (is_number<std::remove_cvref_t<decltype(operand)>>) return (operand);
        else if constexpr (!First::is_open) return redistribute_to<P>(operand, S::name);
        else
          return redistribute_to<P>(
              operand, S::name, false,
              layout_of<P, First::dims>.with_numbers_of(first_tensor(x...).actual_layout()));
      };
      return [&](const auto&... there) {
        return apply_placed<steps>(stencil, of_domain, targets, there...);
      }(placed(x)...);
    } else {
      return apply_local<steps>(stencil, of_domain, targets, x...);
    }
  } else {
    return std::tuple<>{};
  }
}

/// How stencils are called on traced values and on values that track gradients. @see call_level
template <int Level>
struct StencilPath;

/// Calls a stencil several times, one call after the other.
template <int Steps, class S, class E, class... X>
auto call_steps(const S& stencil, const E& of_domain, const X&... x);

/// Calls a stencil on operands of any level.
template <class S, class E, class... Y, class... X>
auto call_stencil_path(const S& stencil, const E& of_domain, const std::tuple<const Y&...>& targets,
                       const X&... x) {
  constexpr int levels[] = {call_level<X>...};
  constexpr int level = [&] {
    int most = 0;
    for (const int l : levels) most = l > most ? l : most;
    return most;
  }();
  static_assert(level < 3 || sizeof...(Y) == 0,
                "cleave: an operation in place cannot change a value that tracks gradients, nor "
                "write what depends on one");
  constexpr bool is_unrolled = level == 3 && is_repeated<S> && sizeof...(Y) == 0;
  if constexpr (is_unrolled) return call_steps<steps_of<S>>(single_step(stencil), of_domain, x...);
  else if constexpr (level < 2) return call_stencil(stencil, of_domain, targets, x...);
  else if constexpr (level == 2) return StencilPath<level>::call(stencil, of_domain, targets, x...);
  else if constexpr (sizeof...(Y) == 0) return StencilPath<level>::call(stencil, of_domain, x...);
  else return std::tuple<>{};
}

template <int Steps, class S, class E, class... X>
auto call_steps(const S& stencil, const E& of_domain, const X&... x) {
  auto y = call_stencil_path(stencil, of_domain, std::tuple<>{}, x...);
  if constexpr (Steps == 1) return y;
  else
    return [&]<std::size_t... K, std::size_t... I>(std::index_sequence<K...>,
                                                   std::index_sequence<I...>) {
      const std::tuple<const X&...> all(x...);
      return call_steps<Steps - 1>(stencil, of_domain, std::get<K>(y)...,
                                   std::get<sizeof...(K) + I>(all)...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(y)>>{},
           std::make_index_sequence<sizeof...(X) - std::tuple_size_v<decltype(y)>>{});
}

/// Takes the edges from the end of the arguments.
template <class S, class... Y, class... A>
auto call_stencil_with(const S& stencil, const std::tuple<const Y&...>& targets, const A&... a) {
  static_assert(std::is_base_of_v<Stencil, S>,
                "cleave: apply takes a stencil, a struct derived from cleave::Stencil");
  using Last = std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>;
  constexpr std::size_t count = sizeof...(A) - std::size_t(is_edges<Last>);
  const std::tuple<const A&...> all(a...);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr bool are_operands =
        (AnyOperand<field_t<std::tuple_element_t<I, std::tuple<A...>>>> && ...) &&
        (AnyTensor<field_t<std::tuple_element_t<I, std::tuple<A...>>>> || ...);
    static_assert(
        are_operands,
        "cleave: apply takes a stencil, its fields and numbers, and edges(..) at the end");
    // outside of the generic lambda below, where clang++ 14 evaluates them even if it discards them
    constexpr bool has_ghosts = (is_halo<std::tuple_element_t<I, std::tuple<A...>>> || ...);
    static_assert(!has_ghosts || !declares_stride<S>,
                  "cleave: a stencil with a stride takes tensors, not results of exchange_halo");
    static_assert(!has_ghosts ||
                      ((call_level<field_t<std::tuple_element_t<I, std::tuple<A...>>>> < 2) && ...),
                  "cleave: fields of exchange_halo cannot be combined with traced values and "
                  "values that track gradients; pass the tensors");
    if constexpr (!are_operands) return std::tuple<>{};
    else {
      const auto call = [&](const auto& of_domain) {
        return call_stencil_path(stencil, of_domain, targets,
                                 as_operand(field_of(std::get<I>(all)))...);
      };
      const auto with_ghosts = [&](const auto& of_domain) {
        if constexpr (has_ghosts) {
          return call(EdgesAndGhosts<std::remove_cvref_t<decltype(of_domain)>, count>{
              of_domain, {ghosts_in(std::get<I>(all))...}});
        } else {
          return call(of_domain);
        }
      };
      if constexpr (is_edges<Last>) return with_ghosts(std::get<count>(all));
      else return with_ghosts(edges(none));
    }
  }(std::make_index_sequence<count>{});
}

}  // namespace detail

/// Computes a stencil for every element of a domain.
///
///     auto v = apply(Heat{{}, 0.2}, u, edges(periodic, dirichlet(1.0)));
///     auto [vx, vy] = apply(Velocity{}, vx, vy, p, edges(periodic));
///
/// The result has the extents, the placements (Replicate for Partial) and the element type of the
/// first field; where an edge is `none`, it lacks the elements whose neighbours do not exist. If
/// the stencil declares a stride, the result is coarser or finer than the field. The bits of the
/// result are the same on every mesh.
///
/// @param a     fields, Tensors or DTensors of equally many dimensions, and numbers, as the stencil
///              takes them; edges(..) at the end, without which all are `none`. Fields with other
///              placements are redistributed to those of the first; a Halo is read with the ghosts
///              and edges of its exchange
/// @return      the result; a std::tuple if the stencil returns one
/// @collective  every rank of the mesh, if neighbours are on other ranks
/// @cost        one exchange for all fields, which receives what the rank's part reads beyond its
///              own; one pass over memory; allocates the result, and a box of ghosts
/// @throws Error if periodic fields differ in extents, if meshes differ, or if a field with edges
///               `none` has fewer elements than the stencil reads
template <class S, class... A>
  requires std::is_base_of_v<Stencil, S>
auto apply(const S& stencil, const A&... a) {
  auto results = detail::call_stencil_with(stencil, std::tuple<>{}, a...);
  if constexpr (std::tuple_size_v<decltype(results)> == 1) return std::get<0>(std::move(results));
  else return results;
}

/// The same, written to an existing tensor: `apply(out(v), Heat{}, u, edges(periodic))`.
///
/// The target has the extents and placements of the result; of a stencil with a stride, where no
/// edge is `none`, it may have any extents. It may be a field of which only the element itself is
/// read.
/// @return the target
/// @throws Error also if the target shares elements with a field whose neighbours are read
template <class Y, class S, class... A>
  requires std::is_base_of_v<Stencil, S>
const Y& apply(const Out<Y>& y, const S& stencil, const A&... a) {
  detail::call_stencil_with(stencil, std::tuple<const Y&>(y.target), a...);
  return y.target;
}
/// The same for several results: `apply(out(vx, vy), Velocity{}, vx, vy, p, edges(periodic))`.
template <class... Y, class S, class... A>
  requires std::is_base_of_v<Stencil, S>
void apply(const OutEach<Y...>& y, const S& stencil, const A&... a) {
  detail::call_stencil_with(stencil, y.targets, a...);
}

}  // namespace cleave::inline v0
