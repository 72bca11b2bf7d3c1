// Redistribution as an operation, for graphs and tapes, and as the last step of composites.
#pragma once

#include <cleave/ops/engine/operation.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The `partials` rows of operations that move elements without computing.
inline constexpr const char* moves_elements =
    "sum->sum; avg->avg; max->max; min->min; product->product";

/// The operand with the requested placements. Its gradient gets the placements of the operand when
/// it is accumulated.
struct Redistribute {
  static constexpr const char* name = "redistribute";
  static constexpr bool is_placement = true;
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = Elementwise::factors<1>;
  static void view(const Task& task) {
    task.out->data = task.in->data;
    for (int d = 0; d < task.in->dims; ++d) task.strides[d] = task.in->strides[d];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
};

/// The operand with dimension D not sharded.
template <int D>
struct Whole {
  static constexpr const char* name = "whole";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText replicated = cleave::detail::dim_letters(D, D + 1);
  static void view(const Task& task) { Redistribute::view(task); }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
};

}  // namespace ops

}  // namespace cleave::inline v0
