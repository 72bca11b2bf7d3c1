// The elements of one rank's part, grouped by the ranks that own them under another layout.
//
// What two ranks share is a product of lists of indices, one list per dimension: in dimensions that
// are cut block-cyclically it is no box. The groups are packed one behind the other, in an order
// that both sides compute; within a group elements are in row-major order.
//
// Memory and time: per dimension O(runs), not O(their product).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cleave/redistribute/exchange_side.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::redistribution {

/// Local indices of one dimension: start + i * period + [0, length) for i < count.
struct Runs {
  index_t start, length, period, count;
  index_t before;  ///< indices of the runs before
};

/// The local indices of one dimension that have the same coordinates under another layout.
struct DimGroup {
  DimOwnership::Parts parts{};  ///< on the axes that shard the dimension in the other layout
  index_t size = 0;
  index_t before = 0;  ///< indices of the groups before
  std::vector<Runs> runs{};

  /// @param periodic  whether runs of equal length and distance are kept as one
  void append(index_t local, index_t length, bool periodic) {
    size += length;
    if (!runs.empty()) {
      Runs& last = runs.back();
      if (last.count == 1 && last.start + last.length == local) {
        last.length += length;
        return;
      }
      if (last.count == 1) last.period = local - last.start;
      if (periodic && last.length == length && last.start + last.count * last.period == local) {
        ++last.count;
        return;
      }
    }
    runs.push_back({local, length, 0, 1, size - length});
  }
};

/// The local indices of the part `of` under `own`, grouped by the parts of `other`.
inline std::vector<DimGroup> dim_groups(const DimOwnership& own, const DimOwnership::Parts& of,
                                        const DimOwnership& other, bool periodic) {
  std::vector<DimGroup> groups;  // ascending
  const index_t count = own.size(of);
  for (index_t local = 0; local < count;) {
    const index_t index = own.global(of, local);
    const DimOwnership::Place there = other.place(index);
    const index_t run = std::min(own.place(index).run, there.run);
    auto group = std::lower_bound(
        groups.begin(), groups.end(), there.parts,
        [](const DimGroup& g, const DimOwnership::Parts& parts) { return g.parts < parts; });
    if (group == groups.end() || group->parts != there.parts)
      group = groups.insert(group, DimGroup{there.parts});
    group->append(local, run, periodic);
    local += run;
  }
  index_t before = 0;
  for (DimGroup& group : groups) group.before = before, before += group.size;
  return groups;
}

/// The grouped elements of one part.
class PartSplit {
 public:
  PartSplit() = default;
  /// @param part  what the rank at `at` owns
  /// @param by    the other layout
  PartSplit(const ExchangeSide& part, const Shape& at, const ExchangeSide& by)
      : extents_(part.shape) {
    for (int d = 0; d < dims(); ++d) {
      const DimOwnership own = part.ownership(d), other = by.ownership(d);
      dim_[std::size_t(d)] = {dim_groups(own, own.parts_of(at), other, 2 * dims() <= max_dims),
                              other.axis, other.levels};
      extents_[d] = own.size(own.parts_of(at));
    }
  }

  /// The number of packed elements.
  index_t size() const { return extents_.product(); }
  std::size_t weight() const {
    std::size_t runs = 0;
    for (const Dim& dim : dim_)
      for (const DimGroup& group : dim.groups) runs += 1 + group.runs.size();
    return runs;
  }

  /// Where the elements are packed that the rank at `coordinate` owns under the other layout: a box
  /// of one dimension, empty if there are none.
  Box place(const Shape& coordinate) const {
    Shape group = extents_;
    return find(coordinate, group) ? place_of(group)
                                   : Box{Shape::filled(1, 0), Shape::filled(1, 0)};
  }

  /// The elements of one rank in packed memory.
  struct Group {
    Shape coordinate{};  ///< of the rank
    Box place{};
  };
  /// All groups, in the order of their places.
  /// @param coordinate  gives the coordinates on axes that do not shard
  std::vector<Group> groups(const Shape& coordinate) const {
    std::vector<Group> all;
    Shape group = Shape::filled(dims(), 0);
    if (size() > 0) do {
        Shape at = coordinate;
        for (int d = 0; d < dims(); ++d) {
          const Dim& dim = dim_[std::size_t(d)];
          for (std::size_t i = 0; i < std::size_t(dim.levels); ++i)
            at[dim.axis[i]] = dim.groups[std::size_t(group[d])].parts[i];
        }
        all.push_back({at, place_of(group)});
      } while (next_index(group_counts(), group));
    return all;
  }

  /// Whether packed elements are in the order of dense, unpacked ones.
  bool is_identity() const {
    index_t rows = 1;
    for (int d = 0; d < dims(); ++d) {
      const auto& groups = dim_[std::size_t(d)].groups;
      for (const DimGroup& group : groups)
        if (groups.size() > 1 && (rows > 1 || group.runs.size() > 1 || group.runs[0].count > 1 ||
                                  group.runs[0].start != group.before))
          return false;
      rows *= extents_[d];
    }
    return true;
  }

  /// Copies all elements to packed memory.
  template <class Device>
  void pack(const View& part, const View& packed) const {
    for (Copy copy(*this, part, packed); copy.next();)
      strided_copy(Device{}, copy.part, copy.packed);
  }
  /// Copies those of the rank at `coordinate` to dense memory.
  template <class Device>
  void pack_group(const Shape& coordinate, const View& part, const View& dense) const {
    for (Copy copy(*this, part, dense, &coordinate); copy.next();)
      strided_copy(Device{}, copy.part, copy.packed);
  }
  /// The inverse of `pack`.
  template <class Device>
  void unpack(const View& packed, const View& part) const {
    for (Copy copy(*this, part, packed); copy.next();)
      strided_copy(Device{}, copy.packed, copy.part);
  }

 private:
  /// One dimension. A group of elements is a product of groups, given by their numbers.
  struct Dim {
    std::vector<DimGroup> groups{};
    std::array<std::int8_t, max_axes> axis{};  ///< on which `parts` are coordinates
    int levels = 0;
  };

  int dims() const { return extents_.dims; }
  const DimGroup& at(int d, const Shape& group) const {
    return dim_[std::size_t(d)].groups[std::size_t(group[d])];
  }

  /// The group of the rank at `coordinate`. @return whether it has elements
  bool find(const Shape& coordinate, Shape& group) const {
    for (int d = 0; d < dims(); ++d) {
      const Dim& dim = dim_[std::size_t(d)];
      group[d] = -1;
      for (std::size_t k = 0; k < dim.groups.size(); ++k) {
        bool is_it = true;
        for (std::size_t i = 0; i < std::size_t(dim.levels); ++i)
          is_it = is_it && dim.groups[k].parts[i] == coordinate[dim.axis[i]];
        if (is_it) group[d] = index_t(k);
      }
      if (group[d] < 0) return false;
    }
    return true;
  }

  /// @pre the part has elements
  Box place_of(const Shape& group) const {
    index_t offset = 0, volume = 1, rest = size();
    for (int d = 0; d < dims(); ++d) {
      rest /= extents_[d];
      offset += volume * at(d, group).before * rest;
      volume *= at(d, group).size;
    }
    return {Shape::filled(1, offset), Shape::filled(1, offset + volume)};
  }

  Shape group_counts() const {
    Shape counts = extents_;
    for (int d = 0; d < dims(); ++d) counts[d] = index_t(dim_[std::size_t(d)].groups.size());
    return counts;
  }

  /// Elements of the part and the same in packed memory: one product of runs after the other.
  class Copy {
   public:
    View part, packed;

    /// @param only  if not null, the elements of the rank at that coordinate, alone in `to`
    Copy(const PartSplit& split, const View& from, const View& to, const Shape* only = nullptr)
        : part(from), packed(to), split_(split), from_(from), to_(to), only_(only != nullptr) {
      group_ = runs_ = Shape::filled(split.dims(), 0);
      done_ = split.size() == 0 || (only_ && !split.find(*only, group_));
    }

    /// Sets the views to those of the next copy. @return false if there is none
    bool next() {
      if (done_) return false;
      set_views();
      Shape counts = group_;
      for (int d = 0; d < counts.dims; ++d) counts[d] = index_t(split_.at(d, group_).runs.size());
      if (!next_index(counts, runs_)) done_ = only_ || !next_index(split_.group_counts(), group_);
      return true;
    }

   private:
    void set_views() {
      Shape steps = group_;
      for (int d = 0; d < steps.dims; ++d) steps[d] = split_.at(d, group_).size;
      steps = row_major_strides(steps);
      index_t from = 0, to = only_ ? 0 : split_.place_of(group_).begin[0];
      part.extents.dims = 0;
      for (int d = 0; d < steps.dims; ++d) {
        const Runs& run = split_.at(d, group_).runs[std::size_t(runs_[d])];
        from += run.start * from_.strides[d], to += run.before * steps[d];
        if (run.count > 1) push(run.count, run.period * from_.strides[d], run.length * steps[d]);
        push(run.length, from_.strides[d], steps[d]);
      }
      const index_t element = index_t(size_of(part.dtype));
      part.data = static_cast<std::byte*>(from_.data) + from * element;
      packed.data = static_cast<std::byte*>(to_.data) + to * element;
      packed.extents = part.extents;
      part.strides.dims = packed.strides.dims = part.extents.dims;
    }
    void push(index_t extent, index_t stride, index_t step) {
      const int d = part.extents.dims++;
      part.extents[d] = extent, part.strides[d] = stride, packed.strides[d] = step;
    }

    const PartSplit& split_;
    View from_, to_;
    bool only_, done_;
    Shape group_{}, runs_{};
  };

  Shape extents_{};
  std::array<Dim, std::size_t(max_dims)> dim_{};
};

}  // namespace cleave::redistribution
