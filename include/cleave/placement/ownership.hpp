// Which indices of a global array a rank owns: constexpr arithmetic, for any rank, without
// communication. The only file that knows how a dimension is cut; planner, collectives and files
// ask the values below.
//
// An axis of n ranks cuts an extent N in one of these ways; trailing ranks may own nothing:
//
//   Shard          chunk = ceil(N / n), coordinate c owns [min(c chunk, N), min((c + 1) chunk, N))
//   Balanced       the first N mod n coordinates own floor(N / n) + 1 indices, the others one less
//   BlockCyclic    block b = [b nb, (b + 1) nb) belongs to coordinate b mod n
//   Owned          one coordinate owns all
//   Cuts           coordinate c owns [points[c], points[c + 1]), as far as it is in [0, N)
//
// Several axes on one dimension apply in the order of the axes, each to the local indices that the
// ones before leave: for parts that are ranges, to the range that is left.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

/// Half-open range of indices.
struct IndexRange {
  index_t begin = 0;
  index_t end = 0;
  constexpr index_t size() const { return end - begin; }
  friend constexpr bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// How one axis cuts [0, extent) into parts, one per rank of the axis.
///
/// Each index is in one part. Local indices of a part ascend with the global ones.
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
  /// @throws Error if the owner of an Owned placement is not a rank of the axis, or the block or
  ///         the cut points are not known
  constexpr DimCut(index_t extent, index_t parts, const Placement& how = Placement::shard(0))
      : extent_(std::uint64_t(extent)),
        parts_(std::uint64_t(parts)),
        block_(how.kind == PlacementKind::shard ? (extent_ + parts_ - 1) / parts_
                                                : std::uint64_t(how.number)),
        kind_(how.kind) {
    if (kind_ == PlacementKind::owned && how.number >= parts) throw_no_owner(how, parts);
    if (how.is_open()) throw_open(how);
    if (kind_ == PlacementKind::cuts) points_ = &detail::cut_points(how.number);
  }

  /// The number of indices of a part. @pre 0 <= part < parts
  constexpr index_t size(index_t part) const {
    if (kind_ != PlacementKind::block_cyclic) return range(part).size();
    const std::uint64_t blocks = extent_ / block_, last = blocks % parts_, p = std::uint64_t(part);
    return index_t(blocks / parts_ * block_ + (p < last    ? block_
                                               : p == last ? extent_ % block_
                                                           : 0));
  }

  /// The size of the longest part.
  constexpr index_t longest() const {
    if (kind_ == PlacementKind::owned) return index_t(extent_);
    index_t most = size(0);
    for (index_t p = 1; kind_ == PlacementKind::cuts && p < index_t(parts_); ++p)
      most = size(p) > most ? size(p) : most;
    return most;
  }

  /// The indices of a part. @pre 0 <= part < parts; the parts are ranges
  constexpr IndexRange range(index_t part) const {
    const auto p = std::uint64_t(part);
    return {index_t(begin(p)), index_t(begin(p + 1))};
  }

  /// The index that a part has at a local index. @pre 0 <= local < size(part)
  constexpr index_t global(index_t part, index_t local) const {
    if (kind_ != PlacementKind::block_cyclic) return range(part).begin + local;
    const auto l = std::uint64_t(local);
    return index_t((l / block_ * parts_ + std::uint64_t(part)) * block_ + l % block_);
  }

  /// @pre 0 <= index < extent
  constexpr Place place(index_t index) const {
    const auto g = std::uint64_t(index);
    if (kind_ == PlacementKind::block_cyclic) {
      const std::uint64_t block = g / block_, within = g % block_;
      const std::uint64_t rest = extent_ - g, run = block_ - within;
      return {index_t(block % parts_), index_t(block / parts_ * block_ + within),
              index_t(parts_ > 1 && run < rest ? run : rest)};
    }
    const std::uint64_t part = part_of(g);
    const IndexRange own = range(index_t(part));
    return {index_t(part), index - own.begin, own.end - index};
  }

  /// The parts that have indices in common with a range: empty if there are none.
  /// @pre the parts are ranges
  constexpr IndexRange parts_within(IndexRange window) const {
    if (window.begin < 0) window.begin = 0;
    if (window.end > index_t(extent_)) window.end = index_t(extent_);
    if (window.size() <= 0) return {0, 0};
    return {place(window.begin).part, place(window.end - 1).part + 1};
  }

  /// Whether all parts are of the same length.
  constexpr bool is_even() const {
    if (kind_ == PlacementKind::owned) return parts_ == 1 || extent_ == 0;
    for (index_t p = 1; kind_ == PlacementKind::cuts && p < index_t(parts_); ++p)
      if (size(p) != size(0)) return false;
    return std::uint64_t(size(0)) * parts_ == extent_;
  }

 private:
  constexpr std::uint64_t begin(std::uint64_t part) const {
    switch (kind_) {
      case PlacementKind::balanced: {
        const std::uint64_t longer = extent_ % parts_;
        return part * (extent_ / parts_) + (part < longer ? part : longer);
      }
      case PlacementKind::owned: return part <= block_ ? 0 : extent_;
      case PlacementKind::cuts: {
        if (part >= parts_ || part >= std::uint64_t(points_->parts)) return extent_;
        const auto first = std::uint64_t(points_->at[part]);
        return first < extent_ ? first : extent_;
      }
      default: {
        const std::uint64_t first = part * block_;
        return first < extent_ ? first : extent_;
      }
    }
  }

  constexpr std::uint64_t part_of(std::uint64_t index) const {
    switch (kind_) {
      case PlacementKind::balanced: {
        const std::uint64_t each = extent_ / parts_, longer = extent_ % parts_;
        const std::uint64_t edge = longer * (each + 1);
        return index < edge ? index / (each + 1) : longer + (index - edge) / each;
      }
      case PlacementKind::owned: return block_;
      case PlacementKind::cuts: {  // the last part that does not begin behind the index
        std::uint64_t low = 0, high = std::uint64_t(points_->parts);
        for (high = high < parts_ ? high : parts_; high - low > 1;) {
          const std::uint64_t middle = (low + high) / 2;
          (std::uint64_t(points_->at[middle]) <= index ? low : high) = middle;
        }
        return low;
      }
      default: return index / block_;
    }
  }

  [[noreturn]] static void throw_no_owner(const Placement& how, index_t parts) {
    throw Error("ownership", to_string(how) + " names a rank that an axis of " +
                                 std::to_string(parts) + " ranks does not have");
  }

  [[noreturn]] static void throw_open(const Placement& how) {
    throw Error("ownership",
                to_string(how) + (how.kind == PlacementKind::cuts
                                      ? " has no cut points: pass Cuts<dim>{0, .., "
                                        "extent}, one point more than ranks"
                                      : " has no block: pass BlockCyclic<dim>(block)"));
  }

  std::uint64_t extent_, parts_;  // no sum of theirs overflows
  std::uint64_t block_;           ///< of Owned, the owner
  PlacementKind kind_;
  const detail::CutPoints* points_ = nullptr;  ///< of Cuts
};

/// Why the blocks and the cut points of a layout do not fit a tensor and a mesh; empty if they do.
inline std::string misfit_of_cuts(const Layout& layout, const Shape& shape, const Shape& mesh) {
  for (int a = 0; a < layout.axes; ++a) {
    const Placement& p = layout[a];
    if (p.kind == PlacementKind::block_cyclic && p.number <= 0)
      return "BlockCyclic<" + std::to_string(int(p.dim)) +
             "> requires a block of at least 1, not " + std::to_string(p.number);
    if (p.kind != PlacementKind::cuts) continue;
    if (p.number == 0)
      return "Cuts<" + std::to_string(int(p.dim)) + "> requires cut points: Cuts<" +
             std::to_string(int(p.dim)) + ">{0, .., extent}";
    const detail::CutPoints& points = detail::cut_points(p.number);
    if (points.parts != mesh[a] || points.at[points.parts] != shape[p.dim])
      return to_string(p) + " makes " + std::to_string(points.parts) + " parts of " +
             std::to_string(points.at[points.parts]) + " indices; axis " + std::to_string(a) +
             " has " + std::to_string(mesh[a]) + " ranks, the dimension has " +
             std::to_string(shape[p.dim]) + " indices";
  }
  return {};
}

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
/// @pre what it owns is a range
constexpr void shard_box(Box& box, const Placement& placement, index_t parts, index_t part) {
  if (!placement.shards()) return;
  const int d = placement.dim;
  const IndexRange range = DimCut(box.extent(d), parts, placement).range(part);
  box.end[d] = box.begin[d] + range.end;
  box.begin[d] += range.begin;
}

/// The box of global indices that the rank at `coordinate` of a mesh has values for.
///
/// @param layout      one placement per axis; Replicate and Partial do not restrict the box
/// @pre layout.is_box()
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
  Shape extents = shape;
  for (int a = 0; a < layout.axes; ++a)
    if (const Placement& p = layout[a]; p.shards())
      extents[p.dim] = DimCut(extents[p.dim], mesh[a], p).size(coordinate[a]);
  return extents;
}

/// The indices of one dimension that ranks own: the cuts of all axes that shard it.
struct DimOwnership {
  index_t extent = 0;
  int levels = 0;
  std::array<std::int8_t, max_axes> axis{};  ///< of each cut, in the order in which they apply
  std::array<Placement, max_axes> how{};
  std::array<index_t, max_axes> parts{};

  /// The coordinates of a rank on those axes.
  using Parts = std::array<index_t, max_axes>;

  /// Where an index is.
  struct Place {
    Parts parts{};  ///< that own it
    index_t local = 0;
    index_t run = 0;  ///< as in DimCut
  };

  /// @param order  of the axes
  constexpr DimOwnership(const Layout& layout, const std::array<std::int8_t, max_axes>& order,
                         int dim, index_t size, const Shape& mesh)
      : extent(size) {
    for (int i = 0; i < layout.axes; ++i)
      if (const std::int8_t a = order[std::size_t(i)]; layout[a].shards(dim)) {
        axis[std::size_t(levels)] = a, how[std::size_t(levels)] = layout[a];
        parts[std::size_t(levels++)] = mesh[a];
      }
  }

  constexpr Parts parts_of(const Shape& coordinate) const {
    Parts of{};
    for (std::size_t i = 0; i < std::size_t(levels); ++i) of[i] = coordinate[axis[i]];
    return of;
  }

  /// How many indices a rank owns.
  constexpr index_t size(const Parts& of) const {
    index_t left = extent;
    for (std::size_t i = 0; i < std::size_t(levels); ++i) left = cut(i, left).size(of[i]);
    return left;
  }

  /// @pre 0 <= index < extent
  constexpr Place place(index_t index) const {
    Place found{{}, index, extent - index};
    index_t left = extent;
    for (std::size_t i = 0; i < std::size_t(levels); ++i) {
      const DimCut here = cut(i, left);
      const DimCut::Place at = here.place(found.local);
      found.parts[i] = at.part, found.local = at.local;
      found.run = at.run < found.run ? at.run : found.run;
      left = here.size(at.part);
    }
    return found;
  }

  /// The global index of a local one. @pre 0 <= local < size(of)
  constexpr index_t global(const Parts& of, index_t local) const {
    std::array<index_t, std::size_t(max_axes) + 1> left{extent};
    for (std::size_t i = 0; i < std::size_t(levels); ++i) left[i + 1] = cut(i, left[i]).size(of[i]);
    for (std::size_t i = std::size_t(levels); i-- > 0;)
      local = cut(i, left[i]).global(of[i], local);
    return local;
  }

 private:
  constexpr DimCut cut(std::size_t level, index_t left) const {
    return {left, parts[level], how[level]};
  }
};

}  // namespace cleave::inline v0
