// Which indices of a global array a rank owns: constexpr arithmetic, for any rank, without
// communication. The only file that knows how a dimension is cut; planner, collectives and files
// ask the values below.
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

/// How one axis cuts [0, extent) into parts, one per rank of the axis.
///
/// Each index is in one part. The parts are consecutive; none is longer than the first.
class DimCut {
 public:
  /// Where an index is.
  struct Place {
    index_t part;   ///< that owns it
    index_t local;  ///< its index among those of the part
    index_t run;    ///< how many indices, from this one on, follow each other in the part
    friend constexpr bool operator==(const Place&, const Place&) = default;
  };

  /// @pre extent >= 0, parts > 0
  constexpr DimCut(index_t extent, index_t parts)
      : extent_(std::uint64_t(extent)),
        parts_(std::uint64_t(parts)),
        chunk_((extent_ + parts_ - 1) / parts_) {}

  /// The indices of a part. @pre 0 <= part < parts
  constexpr IndexRange range(index_t part) const {
    const std::uint64_t first = std::uint64_t(part) * chunk_;
    const std::uint64_t begin = first < extent_ ? first : extent_;
    const std::uint64_t end = begin + chunk_ < extent_ ? begin + chunk_ : extent_;
    return {index_t(begin), index_t(end)};
  }

  /// @pre 0 <= index < extent
  constexpr Place place(index_t index) const {
    const std::uint64_t part = std::uint64_t(index) / chunk_;
    const IndexRange own = range(index_t(part));
    return {index_t(part), index - own.begin, own.end - index};
  }

  /// The parts that have indices in common with a range: empty if there are none.
  constexpr IndexRange parts_within(IndexRange window) const {
    if (window.begin < 0) window.begin = 0;
    if (window.end > index_t(extent_)) window.end = index_t(extent_);
    if (window.size() <= 0) return {0, 0};
    return {place(window.begin).part, place(window.end - 1).part + 1};
  }

  /// Whether all parts are of the same length.
  constexpr bool is_even() const { return chunk_ * parts_ == extent_; }

 private:
  std::uint64_t extent_, parts_, chunk_;  // no sum of theirs overflows
};

/// The chunk of [0, extent) that coordinate `part` of `parts` owns. @pre 0 <= part < parts
constexpr IndexRange shard_range(index_t extent, index_t parts, index_t part) {
  return DimCut(extent, parts).range(part);
}

/// Some parts of a cut, at most four, among which are the longest and the shortest.
struct SampledParts {
  index_t parts;  ///< of the cut
  constexpr index_t count() const { return parts < 4 ? parts : 4; }
  /// The first two, then the last two. @pre 0 <= i < count()
  constexpr index_t operator[](index_t i) const { return i < 2 ? i : parts - count() + i; }
};

/// Restricts a box to what coordinate `part` of an axis with `parts` ranks owns.
constexpr void shard_box(Box& box, const Placement& placement, index_t parts, index_t part) {
  if (!placement.shards()) return;
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
