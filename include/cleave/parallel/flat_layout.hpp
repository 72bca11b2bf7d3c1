// The positions of a group's parameters in flat buffers: sharded, in rank order, and unsharded.
// Index arithmetic and copies only; independent of types and communication.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/linear_range.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::parallel {

/// Several arrays, each sharded along one dimension over the ranks of a group.
///
/// *By rank*: the shards of all arrays on rank 0, then those on rank 1, .. *Whole*: the arrays one
/// after the other. Both have the same number of elements, without padding.
class FlatLayout {
 public:
  explicit FlatLayout(index_t ranks) : sizes_(std::size_t(ranks), 0) {}

  /// @param whole  the extents of the unsharded array
  /// @param dim    the sharded dimension, by the ceil-chunk rule
  void add(const Shape& whole, int dim) {
    Part part{whole, dim, size(), {}};
    for (std::size_t r = 0; r < sizes_.size(); ++r) {
      part.at.push_back(sizes_[r]);
      sizes_[r] += extents_of(part, index_t(r)).product();
    }
    parts_.push_back(std::move(part));
  }

  std::size_t count() const { return parts_.size(); }
  index_t ranks() const { return index_t(sizes_.size()); }
  /// The number of elements of all ranks, and of one rank.
  index_t size() const {
    index_t n = 0;
    for (const index_t size : sizes_) n += size;
    return n;
  }
  index_t size(index_t rank) const { return sizes_[std::size_t(rank)]; }

  /// The range of each rank's elements in by-rank order.
  std::vector<Box> pieces() const {
    std::vector<Box> pieces;
    index_t at = 0;
    for (const index_t size : sizes_) {
      pieces.push_back(
          {Shape(std::array<index_t, 1>{at}), Shape(std::array<index_t, 1>{at + size})});
      at += size;
    }
    return pieces;
  }

  /// The offset of array i's shard among the elements of a rank, and the extents of the shard.
  index_t begin(std::size_t i, index_t rank) const { return parts_[i].at[std::size_t(rank)]; }
  Shape extents(std::size_t i, index_t rank) const { return extents_of(parts_[i], rank); }
  /// The offset of array i in whole order, and its extents.
  index_t whole_begin(std::size_t i) const { return parts_[i].whole_begin; }
  const Shape& whole_extents(std::size_t i) const { return parts_[i].whole; }

  /// The shard of array i on a rank, in a by-rank buffer.
  View by_rank(const View& flat, std::size_t i, index_t rank) const {
    index_t at = begin(i, rank);
    for (index_t r = 0; r < rank; ++r) at += size(r);
    return View::dense(detail::element_at(flat, at), flat.dtype, extents(i, rank));
  }
  /// The same shard in a view of the whole array.
  template <class V>
  V in_whole(const V& array, std::size_t i, index_t rank) const {
    Box box = Box::of(array.extents);
    const Part& part = parts_[i];
    const IndexRange range = shard_range(part.whole[part.dim], ranks(), rank);
    box.begin[part.dim] = range.begin;
    box.end[part.dim] = range.end;
    return array[box];
  }

  /// Whether by-rank and whole order are the same.
  bool is_one_order() const {
    if (parts_.size() != 1) return false;
    index_t outer = 1;
    for (int d = 0; d < parts_[0].dim; ++d) outer *= parts_[0].whole[d];
    return outer == 1;
  }

  /// Copies a by-rank buffer to the whole arrays. @param device  of both
  template <class Device>
  void join(Device device, const View& flat, const View& whole) const {
    for (index_t r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        const View array =
            View::dense(detail::element_at(whole, whole_begin(i)), whole.dtype, whole_extents(i));
        copy(device, by_rank(flat, i, r), in_whole(array, i, r));
      }
  }
  /// Copies a whole array, strided or not, to a by-rank buffer.
  template <class Device>
  void cut(Device device, const ConstView& array, std::size_t i, const View& flat) const {
    for (index_t r = 0; r < ranks(); ++r) copy(device, in_whole(array, i, r), by_rank(flat, i, r));
  }

 private:
  struct Part {
    Shape whole;
    int dim;
    index_t whole_begin;
    std::vector<index_t> at;  ///< the offset on each rank
  };

  Shape extents_of(const Part& part, index_t rank) const {
    Shape extents = part.whole;
    extents[part.dim] = shard_range(part.whole[part.dim], ranks(), rank).size();
    return extents;
  }
  template <class Device>
  static void copy(Device device, const ConstView& from, const View& to) {
    if (from.size() != 0) strided_copy(device, from, to);
  }

  std::vector<index_t> sizes_;  ///< elements per rank
  std::vector<Part> parts_;
};

}  // namespace cleave::inline v0::parallel
