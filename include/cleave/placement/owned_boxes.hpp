// What a rank owns as boxes of global indices: one box, or one per product of blocks where a
// dimension is cut block-cyclically.
#pragma once

#include <cleave/placement/ownership.hpp>

namespace cleave::inline v0 {

/// Calls f(global box, the same elements as a box of local indices) for boxes that together are
/// what the rank at `coordinate` owns, ascending in row-major order of their first indices.
template <class F>
constexpr void each_owned_box(const Layout& layout, const Shape& shape, const Shape& mesh,
                              const Shape& coordinate, const F& f) {
  if (layout.is_box()) {
    const Box box = owned_box(layout, shape, mesh, coordinate);
    return f(box, Box::of(box.extents()));
  }
  Box box = Box::of(shape), local = box;
  const auto descend = [&](const auto& self, int d) -> void {
    if (d == shape.dims) return f(box, local);
    const DimOwnership own(layout, {0, 1, 2, 3, 4, 5, 6, 7}, d, shape[d], mesh);
    const DimOwnership::Parts parts = own.parts_of(coordinate);
    const index_t count = own.size(parts);
    for (index_t at = 0; at < count;) {
      const index_t index = own.global(parts, at), run = own.place(index).run;
      box.begin[d] = index, box.end[d] = index + run;
      local.begin[d] = at, local.end[d] = at + run;
      self(self, d + 1);
      at += run;
    }
  };
  descend(descend, 0);
}

}  // namespace cleave::inline v0
