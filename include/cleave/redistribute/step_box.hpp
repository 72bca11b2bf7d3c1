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

/// The extents of the longest box. None of its dimensions is longer in any other.
constexpr Shape longest_extents(const StepLayout& of, const Shape& shape, const Shape& mesh) {
  return owned_box(of, shape, mesh, Shape::filled(mesh.dims, 0)).extents();
}

/// Whether every sharded dimension is divided equally among the ranks.
constexpr bool shards_evenly(const StepLayout& of, const Shape& shape, const Shape& mesh) {
  Shape left = shape;
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    if (!of.layout[a].shards()) continue;
    index_t& extent = left[of.layout[a].dim];
    const DimCut cut(extent, mesh[a]);
    if (!cut.is_even()) return false;
    extent = cut.range(0).size();
  }
  return true;
}

}  // namespace cleave::redistribution
