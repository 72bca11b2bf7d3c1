// Which indices of a global array a rank owns: constexpr arithmetic, for any rank, without
// communication.
//
// An axis of n ranks shards an extent N by the ceil-chunk rule: chunk = ceil(N / n), coordinate c
// owns [min(c * chunk, N), min((c + 1) * chunk, N)). Trailing ranks may own less, or nothing.
// Several axes on one dimension apply in the order of the axes, each to the range that is left.
#pragma once

#include <cstdint>

#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave {

/// Half-open range of indices.
struct IndexRange {
  index_t begin = 0;
  index_t end = 0;
  constexpr index_t size() const { return end - begin; }
  friend constexpr bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The chunk of [0, extent) that coordinate `part` of `parts` owns. @pre 0 <= part < parts
constexpr IndexRange shard_range(index_t extent, index_t parts, index_t part) {
  const auto all = std::uint64_t(extent), count = std::uint64_t(parts);  // no sum below overflows
  const std::uint64_t chunk = (all + count - 1) / count;
  const std::uint64_t first = std::uint64_t(part) * chunk;
  const std::uint64_t begin = first < all ? first : all;
  const std::uint64_t end = begin + chunk < all ? begin + chunk : all;
  return {index_t(begin), index_t(end)};
}

/// Restricts a box to what coordinate `part` of an axis with `parts` ranks owns.
constexpr void shard_box(Box& box, const Placement& placement, index_t parts, index_t part) {
  if (!placement.is_shard()) return;
  const int d = placement.dim;
  const IndexRange range = shard_range(box.extent(d), parts, part);
  box.end[d] = box.begin[d] + range.end;
  box.begin[d] += range.begin;
}

/// The box of global indices that the rank at `coordinate` of a mesh has values for.
///
/// @param layout      one placement per axis; Replicate and Partial do not restrict the box
/// @param shape       global extents of the tensor
/// @param mesh        extents of the mesh
/// @param coordinate  of the rank, one per axis
constexpr Box owned_box(const Layout& layout, const Shape& shape, const Shape& mesh,
                        const Shape& coordinate) {
  Box box = Box::of(shape);
  for (int a = 0; a < layout.axes; ++a) shard_box(box, layout[a], mesh[a], coordinate[a]);
  return box;
}

/// The local extents of the rank at `coordinate`.
constexpr Shape local_shape(const Layout& layout, const Shape& shape, const Shape& mesh,
                            const Shape& coordinate) {
  return owned_box(layout, shape, mesh, coordinate).extents();
}

}  // namespace cleave
