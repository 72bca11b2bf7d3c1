// Which indices a rank owns between two steps of a plan.
#pragma once

#include <algorithm>

#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/plan.hpp>

namespace cleave::inline v0::redistribution {

/// The box of global indices of the rank at `coordinate`: `cleave::owned_box` with the axes
/// applied in the order of the step. @pre of.is_box()
constexpr Box owned_box(const StepLayout& of, const Shape& shape, const Shape& mesh,
                        const Shape& coordinate) {
  Box box = Box::of(shape);
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    shard_box(box, of.layout[a], mesh[a], coordinate[a]);
  }
  return box;
}

/// Extents that no rank's part exceeds in any dimension.
constexpr Shape longest_extents(const StepLayout& of, const Shape& shape, const Shape& mesh) {
  Shape extents = shape;
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    const Placement& p = of.layout[a];
    if (p.shards()) extents[p.dim] = DimCut(extents[p.dim], mesh[a], p).longest();
  }
  return extents;
}

/// The local extents of the rank at `coordinate`.
constexpr Shape local_extents(const StepLayout& of, const Shape& shape, const Shape& mesh,
                              const Shape& coordinate) {
  Shape extents = shape;
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    const Placement& p = of.layout[a];
    if (p.shards()) extents[p.dim] = DimCut(extents[p.dim], mesh[a], p).size(coordinate[a]);
  }
  return extents;
}

/// What ranks own of dimension d.
constexpr DimOwnership ownership(const StepLayout& of, int d, const Shape& shape,
                                 const Shape& mesh) {
  return {of.layout, of.order, d, shape[d], mesh};
}

/// How many elements the rank at `at` owns under `to` and not under `from`.
constexpr index_t lacking_elements(const StepLayout& from, const StepLayout& to, const Shape& shape,
                                   const Shape& mesh, const Shape& at) {
  if (from.is_box() && to.is_box()) {
    const Box wanted = owned_box(to, shape, mesh, at);
    return wanted.volume() - intersect(owned_box(from, shape, mesh, at), wanted).volume();
  }
  index_t wanted = 1, had = 1;
  for (int d = 0; d < shape.dims; ++d) {
    const DimOwnership after = ownership(to, d, shape, mesh),
                       before = ownership(from, d, shape, mesh);
    const DimOwnership::Parts own = after.parts_of(at), there = before.parts_of(at);
    const index_t count = after.size(own);
    index_t common = 0;
    for (index_t local = 0; local < count;) {
      const index_t index = after.global(own, local);
      const DimOwnership::Place place = before.place(index);
      const index_t run = std::min(after.place(index).run, place.run);
      if (place.parts == there) common += run;
      local += run;
    }
    wanted *= count, had *= common;
  }
  return wanted - had;
}

/// Whether every sharded dimension is divided equally among the ranks.
constexpr bool shards_evenly(const StepLayout& of, const Shape& shape, const Shape& mesh) {
  Shape left = shape;
  for (int i = 0; i < of.layout.axes; ++i) {
    const int a = of.order[std::size_t(i)];
    if (!of.layout[a].shards()) continue;
    index_t& extent = left[of.layout[a].dim];
    const DimCut cut(extent, mesh[a], of.layout[a]);
    if (!cut.is_even()) return false;
    extent = cut.range(0).size();
  }
  return true;
}

}  // namespace cleave::inline v0::redistribution
