// The elements of one rank's part, split by the ranks that own them under another layout.
//
// What two ranks share is a product of lists of indices, one list per dimension: in dimensions that
// are cut block-cyclically it is no box. The shares are packed one behind the other, in an order
// that both sides compute; within a share elements are in row-major order.
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

namespace cleave::inline v0::redistribution {

/// Local indices of one dimension: start + i * period + [0, length) for i < count.
struct Runs {
  index_t start, length, period, count;
  index_t before;  ///< indices of the runs before
};

/// The local indices of one dimension that have the same coordinates under another layout.
struct DimShare {
  DimOwnership::Parts parts{};  ///< on the axes that shard the dimension in the other layout
  index_t size = 0;
  index_t before = 0;  ///< indices of the shares before
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

/// The local indices of the part `of` under `own`, split by the parts of `other`.
inline std::vector<DimShare> dim_shares(const DimOwnership& own, const DimOwnership::Parts& of,
                                        const DimOwnership& other, bool periodic) {
  std::vector<DimShare> shares;  // ascending
  const index_t count = own.size(of);
  for (index_t local = 0; local < count;) {
    const index_t index = own.global(of, local);
    const DimOwnership::Place there = other.place(index);
    const index_t run = std::min(own.place(index).run, there.run);
    auto share = std::lower_bound(
        shares.begin(), shares.end(), there.parts,
        [](const DimShare& g, const DimOwnership::Parts& parts) { return g.parts < parts; });
    if (share == shares.end() || share->parts != there.parts)
      share = shares.insert(share, DimShare{there.parts});
    share->append(local, run, periodic);
    local += run;
  }
  index_t before = 0;
  for (DimShare& share : shares) share.before = before, before += share.size;
  return shares;
}

/// The elements of one part, share by share.
class PartSplit {
 public:
  PartSplit() = default;
  /// @param part  what the rank at `at` owns
  /// @param by    the other layout
  PartSplit(const ExchangeSide& part, const Shape& at, const ExchangeSide& by)
      : extents_(part.shape) {
    for (int d = 0; d < dims(); ++d) {
      const DimOwnership own = part.ownership(d), other = by.ownership(d);
      dim_[std::size_t(d)] = {dim_shares(own, own.parts_of(at), other, 2 * dims() <= max_dims),
                              other.axis, other.levels};
      extents_[d] = own.size(own.parts_of(at));
    }
  }

  /// The number of packed elements.
  index_t size() const { return extents_.product(); }
  std::size_t weight() const {
    std::size_t runs = 0;
    for (const Dim& dim : dim_)
      for (const DimShare& share : dim.shares) runs += 1 + share.runs.size();
    return runs;
  }

  /// Where the elements are packed that the rank at `coordinate` owns under the other layout: a box
  /// of one dimension, empty if there are none.
  Box place(const Shape& coordinate) const {
    Shape share = extents_;
    return find(coordinate, share) ? place_of(share)
                                   : Box{Shape::filled(1, 0), Shape::filled(1, 0)};
  }

  /// The elements of one rank in packed memory.
  struct Share {
    Shape coordinate{};  ///< of the rank
    Box place{};
  };
  /// All shares, in the order of their places.
  /// @param coordinate  gives the coordinates on axes that do not shard
  std::vector<Share> shares(const Shape& coordinate) const {
    std::vector<Share> all;
    Shape share = Shape::filled(dims(), 0);
    if (size() > 0) do {
        Shape at = coordinate;
        for (int d = 0; d < dims(); ++d) {
          const Dim& dim = dim_[std::size_t(d)];
          for (std::size_t i = 0; i < std::size_t(dim.levels); ++i)
            at[dim.axis[i]] = dim.shares[std::size_t(share[d])].parts[i];
        }
        all.push_back({at, place_of(share)});
      } while (next_index(share_counts(), share));
    return all;
  }

  /// Whether packed elements are in the order of dense, unpacked ones.
  bool is_identity() const {
    index_t rows = 1;
    for (int d = 0; d < dims(); ++d) {
      const auto& shares = dim_[std::size_t(d)].shares;
      for (const DimShare& share : shares)
        if (shares.size() > 1 && (rows > 1 || share.runs.size() > 1 || share.runs[0].count > 1 ||
                                  share.runs[0].start != share.before))
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
  void pack_share(const Shape& coordinate, const View& part, const View& dense) const {
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
  /// One dimension. A share of elements is a product of shares, given by their numbers.
  struct Dim {
    std::vector<DimShare> shares{};
    std::array<std::int8_t, max_axes> axis{};  ///< on which `parts` are coordinates
    int levels = 0;
  };

  int dims() const { return extents_.dims; }
  const DimShare& at(int d, const Shape& share) const {
    return dim_[std::size_t(d)].shares[std::size_t(share[d])];
  }

  /// The share of the rank at `coordinate`. @return whether it has elements
  bool find(const Shape& coordinate, Shape& share) const {
    for (int d = 0; d < dims(); ++d) {
      const Dim& dim = dim_[std::size_t(d)];
      share[d] = -1;
      for (std::size_t k = 0; k < dim.shares.size(); ++k) {
        bool is_it = true;
        for (std::size_t i = 0; i < std::size_t(dim.levels); ++i)
          is_it = is_it && dim.shares[k].parts[i] == coordinate[dim.axis[i]];
        if (is_it) share[d] = index_t(k);
      }
      if (share[d] < 0) return false;
    }
    return true;
  }

  /// @pre the part has elements
  Box place_of(const Shape& share) const {
    index_t offset = 0, volume = 1, rest = size();
    for (int d = 0; d < dims(); ++d) {
      rest /= extents_[d];
      offset += volume * at(d, share).before * rest;
      volume *= at(d, share).size;
    }
    return {Shape::filled(1, offset), Shape::filled(1, offset + volume)};
  }

  Shape share_counts() const {
    Shape counts = extents_;
    for (int d = 0; d < dims(); ++d) counts[d] = index_t(dim_[std::size_t(d)].shares.size());
    return counts;
  }

  /// Elements of the part and the same in packed memory: one product of runs after the other.
  class Copy {
   public:
    View part, packed;

    /// @param only  if not null, the elements of the rank at that coordinate, alone in `to`
    Copy(const PartSplit& split, const View& from, const View& to, const Shape* only = nullptr)
        : part(from), packed(to), split_(split), from_(from), to_(to), only_(only != nullptr) {
      share_ = runs_ = Shape::filled(split.dims(), 0);
      done_ = split.size() == 0 || (only_ && !split.find(*only, share_));
    }

    /// Sets the views to those of the next copy. @return false if there is none
    bool next() {
      if (done_) return false;
      set_views();
      Shape counts = share_;
      for (int d = 0; d < counts.dims; ++d) counts[d] = index_t(split_.at(d, share_).runs.size());
      if (!next_index(counts, runs_)) done_ = only_ || !next_index(split_.share_counts(), share_);
      return true;
    }

   private:
    void set_views() {
      Shape steps = share_;
      for (int d = 0; d < steps.dims; ++d) steps[d] = split_.at(d, share_).size;
      steps = row_major_strides(steps);
      index_t from = 0, to = only_ ? 0 : split_.place_of(share_).begin[0];
      part.extents.dims = 0;
      for (int d = 0; d < steps.dims; ++d) {
        const Runs& run = split_.at(d, share_).runs[std::size_t(runs_[d])];
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
    Shape share_{}, runs_{};
  };

  Shape extents_{};
  std::array<Dim, std::size_t(max_dims)> dim_{};
};

}  // namespace cleave::inline v0::redistribution
