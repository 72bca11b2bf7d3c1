// explain: what a call of a stencil receives, from which ranks, and what it computes.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/stencil/apply.hpp>
#include <cleave/redistribute/explain_needs.hpp>

namespace cleave::inline v0 {

/// What a rank receives from another one.
struct ReceivedFrom {
  int rank = 0;  ///< in the world
  index_t bytes = 0;

  friend bool operator==(const ReceivedFrom&, const ReceivedFrom&) = default;
};

/// One exchange of a stencil's fields with its sizes: a value to print, count or compare.
struct ExplainedStencil {
  int steps = 1;                         ///< computed after this exchange
  std::vector<ExplainedNeeds> fields{};  ///< of which elements of other ranks are read
  std::vector<ReceivedFrom> from{};      ///< by this rank, in one message each
  index_t bytes = 0;                     ///< the most that a rank receives
  int messages = 0;                      ///< the most that a rank receives
  index_t extra = 0;        ///< the most elements of other ranks' parts that a rank computes
  double microseconds = 0;  ///< of the exchange, estimated
  int rank = 0;

  /// Several lines of readable text.
  std::string text() const;
};

/// Several steps of a stencil with one exchange, and with an exchange for each step.
struct ExplainedRepeat {
  ExplainedStencil together{}, single{};

  /// Several lines of readable text.
  std::string text() const;
};

namespace detail {

/// @param fields  with the reach of all steps
CLEAVE_INLINE ExplainedStencil explain_fields(const StencilFields& fields, const RepeatPlan& plan,
                                              const Layout& layout, const MeshState& mesh);

/// Explains the exchange of some steps. @param x  DTensors with the same placements, and Numbers
template <int Steps, class S, class E, class... X>
ExplainedStencil explain_steps(const S&, const E& of_domain, const X&... x) {
  using Call = StencilCall<S, X...>;
  if constexpr (Call::check_operands() && Call::check_reach() &&
                check_repeat<Steps, Call, E, X...>()) {
    using First = typename Call::First;
    static_assert(is_dtensor<First>, "cleave: explain takes a stencil and DTensors");
    if constexpr (is_dtensor<First>) {
      const First& first = first_tensor(x...);
      const auto placed = [&](const auto& operand) {
        using Field = std::remove_cvref_t<decltype(operand)>;
        if constexpr (is_dtensor<Field>)
          static_assert(std::is_same_v<typename Field::placements_type,
                                       without_partials_t<typename First::placements_type>>,
                        "cleave: explain takes fields with the placements of the first, without "
                        "Partial: redistribute them, as apply does");
        if constexpr (has_open_layout<Field>)
          if (!(operand.actual_layout() == first.actual_layout()))
            throw Error("explain", "the fields are cut differently; redistribute them first",
                        operand.context());
      };
      (placed(x), ...);
      const MeshState& mesh = first.mesh().state();
      StencilFields fields =
          stencil_fields<Call>(S::name, of_domain, std::tie(x...), std::tuple(local_part(x)...));
      fields.domain = stencil_domain(S::name, fields.window, fields.like, {}, first.context());
      RepeatPlan plan;
      if constexpr (Steps > 1)
        plan = plan_repeat(S::name, fields, Call::results(), Steps, first.actual_layout(),
                           first.context());
      return explain_fields(fields, plan, first.actual_layout(), mesh);
    }
  } else {
    return {};
  }
}

}  // namespace detail

/// What `apply` with the same arguments receives and computes, without running it.
///
///     std::puts(explain(Heat{}, u, edges(periodic)).text().c_str());
///     std::puts(explain(repeat<4>(Heat{}), u, edges(periodic)).text().c_str());  // both choices
///
/// @param a     fields, DTensors with the placements of the first, and numbers; then edges(..)
/// @return      an ExplainedStencil; an ExplainedRepeat for `repeat`
/// @collective  none
/// @cost        proportional to the number of ranks
/// @throws Error as `apply`; on a rank outside of the mesh
template <class S, class... A>
  requires std::is_base_of_v<Stencil, S>
auto explain(const S& stencil, const A&... a) {
  using Last = std::tuple_element_t<sizeof...(A) - 1, std::tuple<A...>>;
  constexpr std::size_t count = sizeof...(A) - std::size_t(detail::is_edges<Last>);
  const std::tuple<const A&...> all(a...);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto of_steps = [&]<int Steps>(std::integral_constant<int, Steps>) {
      const auto& step = detail::single_step(stencil);
      if constexpr (detail::is_edges<Last>)
        return detail::explain_steps<Steps>(step, std::get<count>(all),
                                            detail::as_operand(std::get<I>(all))...);
      else
        return detail::explain_steps<Steps>(step, edges(none),
                                            detail::as_operand(std::get<I>(all))...);
    };
    if constexpr (detail::is_repeated<S>)
      return ExplainedRepeat{of_steps(std::integral_constant<int, detail::steps_of<S>>{}),
                             of_steps(std::integral_constant<int, 1>{})};
    else return of_steps(std::integral_constant<int, 1>{});
  }(std::make_index_sequence<count>{});
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/explain_stencil_body.hpp>
#endif
