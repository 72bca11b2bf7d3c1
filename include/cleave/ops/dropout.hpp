// Dropout: elements are set to zero with a probability, the others scaled, so that the mean stays.
//
//     // y[S0,R] = dropout(x[S0,R], 0.1)
//
// Which elements depends on the state of the draw and their global index. A sum over ranks stays
// one, as all of its addends have the same elements dropped. The gradient draws the same mask again:
// a record keeps 24 bytes.
#pragma once

#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/ops/draw.hpp>
#include <cleave/ops/elementwise.hpp>

namespace cleave {

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
  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const {
    return call_op(*this, g);
  }
};

}  // namespace ops

namespace detail {

template <class X>
constexpr auto dropped_out(const X& x, double probability, const RandomState& state) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: dropout is defined on real and complex numbers; cast first");
  return call_op(ops::Dropout{probability, state}, x);
}

constexpr void require_dropout(double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw Error("dropout", "the probability must be in [0, 1]");
}

}  // namespace detail

/// Zero with that probability, else x / (1 - probability); on any mesh the same elements.
///
/// Takes one draw of the state of x's ranks. In a program that is traced it is a draw of each run:
/// every run drops other elements, the same ones as the function called on DTensors would.
///
/// @collective every rank of the world, so that their states stay equal; nothing is communicated,
///             except that CLEAVE_CHECK=collective compares the states
/// @throws Error if the probability must be in [0, 1]; with CLEAVE_CHECK=collective, if states
/// differ
template <AnyTensor X>
constexpr auto dropout(const X& x, double probability) {
  detail::require_dropout(probability);
  return detail::dropped_out(x, probability, detail::take_draw_of("dropout", x));
}

/// The same of a tensor on one rank, from a state that is passed.
template <AnyTensor X>
auto dropout(const X& x, double probability, RandomState& state) {
  detail::require_dropout(probability);
  return detail::dropped_out(x, probability, detail::take_draw_of("dropout", x, state));
}

}  // namespace cleave
