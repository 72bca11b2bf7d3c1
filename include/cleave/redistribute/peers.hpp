// The ranks of a group whose boxes share indices with a given box, found axis by axis: in time
// proportional to their number, not to the size of the group.
#pragma once

#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/plan.hpp>

namespace cleave::inline v0::redistribution {

/// Calls f(coordinate, shared indices) for every box that shares indices with `window`, among the
/// boxes of the ranks that differ from `coordinate` in `axes`. Axes that shard nothing keep their
/// coordinates. @pre of.is_box()
template <class F>
constexpr void each_box_within(const StepLayout& of, const Shape& shape, const Shape& mesh,
                               AxisMask axes, const Shape& coordinate, const Box& window,
                               const F& f) {
  const auto descend = [&](const auto& self, int i, Shape at, const Box& box) -> void {
    while (i < of.layout.axes && !of.layout[of.order[std::size_t(i)]].shards()) ++i;
    if (i == of.layout.axes) {
      const Box shared = intersect(box, window);
      if (!shared.empty()) f(at, shared);
      return;
    }
    const int a = of.order[std::size_t(i)], d = of.layout[a].dim;
    IndexRange parts{coordinate[a], coordinate[a] + 1};
    if (axes >> a & 1u)
      parts = DimCut(box.extent(d), mesh[a], of.layout[a])
                  .parts_within({window.begin[d] - box.begin[d], window.end[d] - box.begin[d]});
    for (index_t part = parts.begin; part < parts.end; ++part) {
      Box inner = box;
      shard_box(inner, of.layout[a], mesh[a], part);
      at[a] = part;
      self(self, i + 1, at, inner);
    }
  };
  if (!window.empty()) descend(descend, 0, coordinate, Box::of(shape));
}

}  // namespace cleave::inline v0::redistribution
