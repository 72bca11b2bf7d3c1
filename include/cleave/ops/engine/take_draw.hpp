// The random state of operations that draw random numbers, their member `state`: for a DTensor that
// of its ranks, for a Tensor that of the caller, for a traced value that of each run of the
// program.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/dtensor/manual_seed.hpp>
#include <cleave/ops/engine/call_op.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The state that a kernel draws from.
/// @param state  of the operation; in a program, its offset is relative to that of the current run
inline RandomState state_of_draw(const Task& task, const RandomState& state) {
  if (task.draws == nullptr) return state;
  return {task.draws->seed, task.draws->offset + state.offset};
}

}  // namespace ops

namespace detail {

/// Takes a draw from the ranks of a DTensor's mesh, or records one in the graph of a traced value.
template <class X>
constexpr RandomState take_draw_of(const char* operation, const X& x) {
  const auto& value = innermost(x);
  using V = std::remove_cvref_t<decltype(value)>;
  static_assert(!is_tensor<V>,
                "cleave: on a Tensor this operation requires a random state as an argument");
  if constexpr (is_dtensor<V>) return take_draws(value.mesh().state(), V::layout, operation);
  else return value.graph().take_draw();
}

/// Takes a draw for a Tensor, from the state that is passed.
template <class X>
RandomState take_draw_of(const char*, const X&, RandomState& state) {
  static_assert(
      is_tensor<std::remove_cvref_t<decltype(innermost(std::declval<const X&>()))>>,
      "cleave: only an operation on a Tensor takes a random state; others use that of the world");
  return take_draws(state);
}

}  // namespace detail

}  // namespace cleave::inline v0
