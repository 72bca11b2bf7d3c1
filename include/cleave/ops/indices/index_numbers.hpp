// The numbers of the elements or rows that indices name in this rank's part of an array, for
// operations that read, add to or replace them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/ops/indices/index_select.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

/// @tparam Number  computes a number from a position and the indices at it. Its `total` are the
///                 global extents of the indexed dimensions, `rows` is the number of a row of
///                 another rank; indices out of range give numbers outside [0, rows]
template <class Number, class Device>
class IndexNumbers {
 public:
  template <class First, class... I>
  IndexNumbers(On<Device> on, const Number& number, const Strided<const First>& first,
               const Strided<const I>&... rest)
      : number_(number),
        extents_(first.extents),
        memory_(allocate_bytes(Device{}, std::size_t(extents_.product()) * sizeof(index_t))) {
    map_indexed(on, number_, Box::of(extents_), extents_,
                Strided<index_t>{data(), extents_, row_major_strides(extents_)}, first, rest...);
  }
  Strided<const index_t> view() const { return {data(), extents_, row_major_strides(extents_)}; }
  /// On a GPU, which reports wrong indices later, they count from the extent of the first
  /// dimension.
  /// @param operation  the name of the operation, for errors
  RowRange range(const char* operation) const {
    return {0, number_.rows + 1, operation, number_.rows + 1 - number_.total[0]};
  }

  /// @throws Error if a kernel has found an index that is out of range
  template <class... I>
  void require(const Task& task, const std::optional<index_t>& wrong,
               const Strided<const I>&... indices) const {
    int k = 0;
    if (wrong) [[unlikely]]
      (require_in(task, indices, number_.total[k++]), ...);
  }

 private:
  template <class I>
  static void require_in(const Task& task, const Strided<const I>& indices, index_t total) {
    Shape at = Shape::filled(indices.extents.dims, 0);
    do {
      const I index = indices.data[cleave::detail::offset_of(at, indices.strides)];
      if (index_t(index) < 0 || index_t(index) >= total)
        cleave::detail::throw_no_such_index(task, index, total);
    } while (next_index(indices.extents, at));
  }
  index_t* data() const { return static_cast<index_t*>(memory_.get()); }

  Number number_;
  Shape extents_;
  std::shared_ptr<void> memory_;
};

}  // namespace cleave::inline v0::kernels
