// The parts of collectives on two levels: flat arrays, copies of the pieces of all ranks, and calls
// of a node or a column.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/mpi/workspace.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

inline View flat_view(void* data, DType type, index_t count) {
  return View::dense(data, type, Shape(std::array<index_t, 1>{count}));
}
inline ConstView flat_view(const void* data, DType type, index_t count) {
  return ConstView::dense(data, type, Shape(std::array<index_t, 1>{count}));
}

/// Indices [begin, end) of a flat view.
inline Box linear_interval(index_t begin, index_t end) {
  return {Shape(std::array<index_t, 1>{begin}), Shape(std::array<index_t, 1>{end})};
}

/// The elements of a flat view in an interval.
inline View part_of(const View& flat, const Box& interval) {
  auto* const data = static_cast<std::byte*>(flat.data);
  return flat_view(data + interval.begin[0] * index_t(size_of(flat.dtype)), flat.dtype,
                   interval.extent(0));
}

/// A call of a node or a column that implements part of a call of the group.
inline Collective part_of_call(const Collective& c, CollectiveKind kind) {
  Collective part;
  part.kind = kind;
  part.op = c.op;
  part.operation = c.operation;
  part.axes = c.axes;
  return part;
}

/// The order of the pieces of all ranks in a flat copy: by a major and a minor index, as
/// [place][node] or [node][place]. Its lists are reused from call to call.
class PieceOrder {
 public:
  /// @param major  this rank's
  /// @param rank   (major, minor) -> a rank of the group
  template <class RankAt>
  void arrange(std::span<const Box> pieces, int majors, int minors, int major, const RankAt& rank) {
    boxes_.clear();
    ranges_.resize(std::size_t(majors), linear_interval(0, 0));
    own_.resize(std::size_t(minors), linear_interval(0, 0));
    count_ = 0;
    for (int i = 0; i < majors; ++i) {
      const index_t begin = count_;
      for (int k = 0; k < minors; ++k) {
        const Box& box = pieces[std::size_t(rank(i, k))];
        boxes_.push_back(&box);
        if (i == major) own_[std::size_t(k)].begin[0] = count_ - begin;
        count_ += box.volume();
        if (i == major) own_[std::size_t(k)].end[0] = count_ - begin;
      }
      ranges_[std::size_t(i)].begin[0] = begin;
      ranges_[std::size_t(i)].end[0] = count_;
    }
  }

  index_t count() const noexcept { return count_; }
  /// The interval of each major index.
  const std::vector<Box>& ranges() const noexcept { return ranges_; }
  /// The intervals of the minor indices, relative to the interval of this rank's major index.
  const std::vector<Box>& own() const noexcept { return own_; }

  /// Calls f(memory in a flat copy, piece) for the pieces that are not empty.
  template <class F>
  void each(const View& copy, const F& f) const {
    auto* at = static_cast<std::byte*>(copy.data);
    for (const Box* box : boxes_) {
      const index_t count = box->volume();
      if (count > 0) f(at, *box);
      at += count * index_t(size_of(copy.dtype));
    }
  }

 private:
  std::vector<const Box*> boxes_{};
  std::vector<Box> ranges_{};
  std::vector<Box> own_{};
  index_t count_ = 0;
};

/// A flat view of scratch for one call. @pre each call begins with `scratch.clear()`
inline View scratch_view(MpiScratch& scratch, DType type, index_t count) {
  return flat_view(scratch.take(std::size_t(count) * size_of(type)), type, count);
}

}  // namespace cleave::detail
