// Draws categories with probabilities proportional to weights.
//
//     // classes[S0,R] = multinomial(weights[S0,R], 5)
//
// Rows may be sharded, categories may not. The draws of a row depend on the random state, the row's
// global index and its weights.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/multinomial_rows.hpp>
#include <cleave/ops/engine/take_draw.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

struct Multinomial {
  index_t count = 0;
  bool replacement = false;
  RandomState state{};  ///< @see state_of_draw

  using result = index_t;
  static constexpr const char* name = "multinomial";
  static constexpr const char* replicated = "j";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return cleave::detail::joined(dims[0] == 1 ? "j->k" : "ij->ik");
  }
  constexpr Shape extents() const { return Shape::filled(1, count); }

  void kernel(const auto& on, const Task& task, const auto& y, const auto& weights) const {
    auto rows = weights;
    auto drawn = y;
    if (weights.extents.dims == 1) {
      rows = {weights.data, as_row(weights.extents, 1), as_row(weights.strides, 0)};
      drawn = {y.data, as_row(y.extents, 1), as_row(y.strides, 0)};
    }
    const index_t first = weights.extents.dims == 1 ? 0 : task.box->begin[0];
    const auto wrong =
        multinomial_rows(on, rows, first, state_of_draw(task, state), replacement, drawn);
    if (wrong) task.fail(*wrong);
  }

 private:
  static Shape as_row(const Shape& of, index_t first) {
    return Shape(std::array<index_t, 2>{first, of[0]});
  }
};

}  // namespace ops

namespace detail {

template <class... R, class X>
constexpr auto drawn_categories(const X& weights, index_t count, bool replacement,
                                const RandomState& state) {
  using T = typename X::value_type;
  static_assert(X::dims == 1 || X::dims == 2,
                "cleave: the weights of multinomial must have one or two dimensions");
  static_assert(!std::is_integral_v<T> && !is_complex<T>,
                "cleave: the weights of multinomial must be real floating-point numbers");
  return call_op<R...>(ops::Multinomial{count, replacement, state}, weights);
}

template <class X>
constexpr void require_draws(const X& weights, index_t count, bool replacement) {
  const index_t categories = shape_of(innermost(weights))[X::dims - 1];
  if (count < 0)
    throw Error("multinomial",
                "the number of draws must not be negative: " + std::to_string(count));
  if (!replacement && count > categories)
    throw Error("multinomial", "cannot draw " + std::to_string(count) + " of " +
                                   std::to_string(categories) + " categories without replacement");
}

}  // namespace detail

/// Draws `count` categories per row: [rows, categories] -> [rows, count], or [categories] ->
/// [count]. Weights need not sum to 1. Without replacement, the draws of a row are distinct, in the
/// order of drawing.
///
/// @collective as `dropout`; if the categories are sharded, one redistribution of the weights
/// @cost       per row of n weights, n + count log n steps with replacement, else n log count. On a
///             GPU @see kernels::multinomial_rows
/// @throws Error if count is negative or, without replacement, exceeds the number of categories. On
///               the ranks that hold the row: if fewer categories than draws have a positive weight
///               (with replacement: none has), or a weight is negative, infinite or NaN; on a GPU
///               at the next wait for the device
template <class... R, AnyTensor X>
constexpr auto multinomial(const X& weights, index_t count, bool replacement = false) {
  detail::require_draws(weights, count, replacement);
  return detail::drawn_categories<R...>(weights, count, replacement,
                                        detail::take_draw_of("multinomial", weights));
}
CLEAVE_USAGE(multinomial, "multinomial(weights, count)")

/// Draws for a local tensor, with the state that is passed.
template <class... R, AnyTensor X>
auto multinomial(const X& weights, index_t count, RandomState& state, bool replacement = false) {
  detail::require_draws(weights, count, replacement);
  return detail::drawn_categories<R...>(weights, count, replacement,
                                        detail::take_draw_of("multinomial", weights, state));
}

}  // namespace cleave::inline v0
