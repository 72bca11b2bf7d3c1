// repeat: several steps of a stencil with one exchange.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/stencil/repeat_plan.hpp>
#include <cleave/ops/stencil/stencil_fields.hpp>

namespace cleave::inline v0 {

/// A stencil that is applied several times. @see repeat
template <class S, int Steps>
struct Repeated : Stencil {
  S stencil;
};

/// `Steps` steps of a stencil in one call of `apply`: the results of a step are the first fields of
/// the next one.
///
///     u = apply(repeat<4>(Heat{{}, 0.2}), u, edges(periodic));  // as four calls of apply
///     auto [p, q] = apply(repeat<8>(Wave{}), p, q, speed, edges(zero));  // returns {2 p - q ..,
///     p}
///
/// There is one exchange, of what all steps read, and a rank also computes those elements of its
/// neighbours that its later steps read: fewer messages, more bytes, more computation; `explain`
/// shows both choices. The bits are those of single steps. Margins are used if they have room for
/// the reach of all steps. A target may be a field that the results replace.
///
/// @cost  besides `apply`'s, allocates two boxes of a rank's part with neighbours, for each result
template <int Steps, class S>
constexpr Repeated<S, Steps> repeat(const S& stencil) {
  static_assert(Steps > 0, "cleave: repeat requires at least one step");
  static_assert(std::is_base_of_v<Stencil, S>,
                "cleave: repeat takes a stencil, a struct derived from cleave::Stencil");
  return {{}, stencil};
}

namespace detail {

template <class S>
inline constexpr bool is_repeated = false;
template <class S, int Steps>
inline constexpr bool is_repeated<Repeated<S, Steps>> = true;

template <class S>
inline constexpr int steps_of = 1;
template <class S, int Steps>
inline constexpr int steps_of<Repeated<S, Steps>> = Steps;

template <class S>
constexpr const S& single_step(const S& stencil) {
  return stencil;
}
template <class S, int Steps>
constexpr const S& single_step(const Repeated<S, Steps>& repeated) {
  return repeated.stencil;
}

/// Whether results can replace the first fields.
template <class Call, class... X>
constexpr bool replaces_fields() {
  constexpr bool is_field[] = {!is_number<X>...};
  if (Call::results() > sizeof...(X)) return false;
  for (std::size_t k = 0; k < Call::results(); ++k)
    if (!is_field[k]) return false;
  return true;
}

/// Whether a stencil can be applied several times to operands X, with edges E.
template <int Steps, class Call, class E, class... X>
constexpr bool check_repeat() {
  if constexpr (Steps > 1) {
    constexpr bool on_tensors = !has_ghosts<E>;
    static_assert(on_tensors,
                  "cleave: repeat makes an exchange of its own; pass tensors, not results of "
                  "exchange_halo");
    static_assert(Call::is_aligned,
                  "cleave: repeat requires a stencil without a stride: its results replace its "
                  "fields");
    constexpr bool has_fields = Call::is_aligned && replaces_fields<Call, X...>();
    static_assert(has_fields || !Call::is_aligned,
                  "cleave: repeat requires a stencil whose first operands are fields, one for "
                  "each of its results, which replace them");
    if constexpr (has_fields) {
      constexpr bool of_one_type = []<std::size_t... K>(std::index_sequence<K...>) {
        return (std::is_same_v<typename std::tuple_element_t<K, std::tuple<X...>>::value_type,
                               typename Call::T> &&
                ...);
      }(std::make_index_sequence<Call::results()>{});
      static_assert(of_one_type,
                    "cleave: repeat requires fields with the element type of the first field where "
                    "results replace them");
      return on_tensors && of_one_type;
    } else {
      return false;
    }
  } else {
    return true;
  }
}

/// Computes all steps but the last one, whose windows it prepares.
///
/// @return the fields of the last step, to which the windows refer
template <class Call, class S, class... X>
auto compute_steps_before_last(const S& stencil, StencilFields& fields, const RepeatPlan& plan,
                               const std::tuple<X...>& operands) {
  using Field = Tensor<typename Call::T, Call::dims, typename Call::Device>;
  constexpr auto results = std::make_index_sequence<Call::results()>{};
  for (std::size_t k = 0; k < Call::fields; ++k) fields.window[k].reach = Call::reaches[k];
  const Shape domain = fields.window[0].domain;
  std::array<Field, Call::results()> now;
  for (int step = 0; step + 1 < plan.steps; ++step) {
    const Box box = plan.computed(fields.part, domain, step);
    std::array<Field, Call::results()> next;
    for (Field& field : next) field = Field(to_array<Call::dims>(box.extents()));
    each_period(box, domain, [&](const Box& piece, const Shape& shift) {
      StencilFields there;
      there.part = piece;
      for (const FieldWindow& field : fields.window)
        there.window.push_back(relative_to(field, shift));
      const Box place = redistribution::shifted(piece, shift).relative_to(box.begin);
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        compute_stencil<Call>(stencil, there, operands, next[K][place]...);
      }(results);
    });
    now = std::move(next);
    for (std::size_t k = 0; k < now.size(); ++k) {
      FieldWindow& field = fields.window[k];
      field.elements = now[k].view(), field.has = box;
      field.ghosts = {}, field.ghost_box = {};
    }
  }
  return now;
}

}  // namespace detail

}  // namespace cleave::inline v0
