// Where the parameters of a group lie in flat memory: the part of each rank, one after the other,
// and all of them put together again. Arithmetic; knows no types and no communication.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/comm/linear_range.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::parallel {

/// Several arrays, each cut along one dimension among the ranks of a group.
///
/// *By rank*: what rank 0 has of all arrays, then what rank 1 has, .. *Whole*: the arrays one after
/// the other. Both have the same number of elements: nothing is padded.
class FlatLayout {
 public:
  explicit FlatLayout(index_t ranks) : sizes_(std::size_t(ranks), 0) {}

  /// @param whole  the extents of the array before it is cut
  /// @param dim    that is cut, by the ceil-chunk rule
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
  /// The elements of all ranks, and those of one.
  index_t size() const {
    index_t n = 0;
    for (const index_t size : sizes_) n += size;
    return n;
  }
  index_t size(index_t rank) const { return sizes_[std::size_t(rank)]; }

  /// The elements of each rank, by rank.
  std::vector<Box> pieces() const {
    std::vector<Box> pieces;
    index_t at = 0;
    for (const index_t size : sizes_) {
      pieces.push_back({Shape(std::array<index_t, 1>{at}), Shape(std::array<index_t, 1>{at + size})});
      at += size;
    }
    return pieces;
  }

  /// Where the part of a rank of array i begins among the elements of the rank, and its extents.
  index_t begin(std::size_t i, index_t rank) const { return parts_[i].at[std::size_t(rank)]; }
  Shape extents(std::size_t i, index_t rank) const { return extents_of(parts_[i], rank); }
  /// Where array i begins in the whole, and its extents.
  index_t whole_begin(std::size_t i) const { return parts_[i].whole_begin; }
  const Shape& whole_extents(std::size_t i) const { return parts_[i].whole; }

  /// The part of a rank of array i in memory that lies by rank.
  View by_rank(const View& flat, std::size_t i, index_t rank) const {
    index_t at = begin(i, rank);
    for (index_t r = 0; r < rank; ++r) at += size(r);
    return View::dense(detail::element_at(flat, at), flat.dtype, extents(i, rank));
  }
  /// The same part in a view of the whole array.
  template <class V>
  V in_whole(const V& array, std::size_t i, index_t rank) const {
    Box box = Box::of(array.extents);
    const Part& part = parts_[i];
    const IndexRange range = shard_range(part.whole[part.dim], ranks(), rank);
    box.begin[part.dim] = range.begin;
    box.end[part.dim] = range.end;
    return array[box];
  }

  /// Whether the two orders are the same.
  bool is_one_order() const {
    if (parts_.size() != 1) return false;
    index_t outer = 1;
    for (int d = 0; d < parts_[0].dim; ++d) outer *= parts_[0].whole[d];
    return outer == 1;
  }

  /// From memory by rank to the whole arrays.
  void join(const View& flat, const View& whole) const {
    for (index_t r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        const View array = View::dense(detail::element_at(whole, whole_begin(i)), whole.dtype,
                                       whole_extents(i));
        copy(by_rank(flat, i, r), in_whole(array, i, r));
      }
  }
  /// From an array, strided or not, to memory by rank.
  void cut(const ConstView& array, std::size_t i, const View& flat) const {
    for (index_t r = 0; r < ranks(); ++r) copy(in_whole(array, i, r), by_rank(flat, i, r));
  }

 private:
  struct Part {
    Shape whole;
    int dim;
    index_t whole_begin;
    std::vector<index_t> at;  ///< of each rank
  };

  Shape extents_of(const Part& part, index_t rank) const {
    Shape extents = part.whole;
    extents[part.dim] = shard_range(part.whole[part.dim], ranks(), rank).size();
    return extents;
  }
  static void copy(const ConstView& from, const View& to) {
    if (from.size() != 0) strided_copy(Host{}, from, to);
  }

  std::vector<index_t> sizes_;  ///< of the ranks
  std::vector<Part> parts_;
};

}  // namespace cleave::parallel
