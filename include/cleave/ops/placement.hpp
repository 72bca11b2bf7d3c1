// What changes placements only, as an operation: graphs and tapes hold it, composites end with it.
#pragma once

#include <cleave/ops/operation.hpp>

namespace cleave {

namespace ops {

/// Rows of operations that move elements without computing.
inline constexpr const char* moves_elements =
    "sum->sum; avg->avg; max->max; min->min; product->product";

/// The operand as it is, under the placements that the call asks for. A gradient returns to the
/// placements of the operand where it is summed.
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

}  // namespace ops

}  // namespace cleave
