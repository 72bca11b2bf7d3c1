// Dropout: sets elements to zero with a given probability and scales the others to keep the mean.
//
//     // y[S0,R] = dropout(x[S0,R], 0.1)
//
// The dropped elements depend on the random state and on global indices. Partial sums remain
// partial, because every rank drops the same elements. The gradient draws the same mask again, so
// that a record on the tape keeps 24 bytes.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/take_draw.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

struct Dropout {
  double probability = 0;
  RandomState state{};  ///< @see state_of_draw

  static constexpr const char* name = "dropout";
  static constexpr const char* partials = "sum->sum; avg->avg; max->max; min->min";
  static constexpr bool needs_box = true;
  static constexpr auto factors = Elementwise::factors<1>;
  void kernel(const auto& on, const Task& task, const auto& y, const auto& x) const {
    map_indexed(on, kernels::DroppedOut(probability, state_of_draw(task, state)), *task.box,
                detail::shape_at(task.in[0].shape, task.in[0].dims), y, x);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const { return call_op(*this, g); }
};

}  // namespace ops

namespace detail {

template <class... R, class X>
constexpr auto dropped_out(const X& x, double probability, const RandomState& state) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: dropout is defined on real and complex numbers; cast first");
  return call_op<R...>(ops::Dropout{probability, state}, x);
}

constexpr void require_dropout(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw Error("dropout", "the probability must be in [0, 1], not " + std::to_string(probability));
}

}  // namespace detail

/// Sets each element to 0 with the given probability, to x / (1 - probability) otherwise. The
/// dropped elements do not depend on the mesh.
///
/// Takes one draw from the state of x's ranks. In a traced program every run takes a draw: each run
/// drops other elements, the same ones as a direct call on DTensors.
///
/// @collective every rank of the world, so that their states stay equal; nothing is communicated,
///             except that CLEAVE_CHECK=collective compares the states
/// @throws Error if the probability is not in [0, 1]; with CLEAVE_CHECK=collective if states differ
template <class... R, AnyTensor X>
constexpr auto dropout(const X& x, double probability) {
  detail::require_dropout(probability);
  return detail::dropped_out<R...>(x, probability, detail::take_draw_of("dropout", x));
}
CLEAVE_USAGE(dropout, "dropout(x, probability)")

/// Dropout of a local tensor, with the state that is passed.
template <class... R, AnyTensor X>
auto dropout(const X& x, double probability, RandomState& state) {
  detail::require_dropout(probability);
  return detail::dropped_out<R...>(x, probability, detail::take_draw_of("dropout", x, state));
}

}  // namespace cleave::inline v0
