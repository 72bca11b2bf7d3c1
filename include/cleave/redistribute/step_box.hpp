// Which indices a rank owns between two steps of a plan.
#pragma once

#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/plan.hpp>

namespace cleave::redistribution {

/// The box of global indices of the rank at `coordinate`: `cleave::owned_box` with the axes
/// applied in the order of the step.
constexpr Box owned_box(const StepLayout& of, const Shape& shape, const Shape& mesh,
                        const Shape& coordinate) {
  Box box = Box::of(shape);
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    shard_box(box, of.layout[a], mesh[a], coordinate[a]);
  }
  return box;
}

/// Whether every sharded dimension is divided equally among the ranks.
constexpr bool shards_evenly(const StepLayout& of, const Shape& shape, const Shape& mesh) {
  Shape parts = Shape::filled(shape.dims, 1);
  for (int a = 0; a < of.layout.axes; ++a)
    if (of.layout[a].is_shard()) parts[of.layout[a].dim] *= mesh[a];
  for (int d = 0; d < shape.dims; ++d)
    if (shape[d] % parts[d] != 0) return false;
  return true;
}

}  // namespace cleave::redistribution
