// Ranges of a strided view in row-major order: elements [begin, begin + count), run by run.
//
// Reductions and messages process a view range by range. Nothing is allocated.
#pragma once

#include <cstddef>

#include <cleave/tensor/copy_loops.hpp>
#include <cleave/tensor/streaming.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// Bytes that a reduction or a packed copy handles at a time: half of a typical L1 cache.
inline constexpr index_t block_bytes = 16 * 1024;

/// Calls move(offset in the view, stride, position in the range, run length) for each run.
template <class Move>
void for_runs(const Shape& extents, const Shape& strides, index_t begin, index_t count, Move move) {
  MergedLoops<1> loops;
  for (int d = 0; d < extents.dims; ++d) loops.push(extents[d], {strides[d]});
  const auto& [steps] = loops.strides;
  const int last = loops.dims - 1;
  if (last < 0) {
    if (count > 0) move(index_t(0), index_t(1), index_t(0), count);
    return;
  }
  const index_t row = loops.extents[last], stride = steps[last];
  for (index_t done = 0; done < count;) {
    index_t at = begin + done;
    const index_t column = at % row;
    index_t offset = column * stride;
    at /= row;
    for (int d = last - 1; d >= 0; --d) {
      offset += at % loops.extents[d] * steps[d];
      at /= loops.extents[d];
    }
    const index_t run = row - column < count - done ? row - column : count - done;
    move(offset, stride, done, run);
    done += run;
  }
}

/// Copies elements [begin, begin + count) of `from`, in row-major order, to contiguous memory.
inline void pack_range(const ConstView& from, index_t begin, index_t count, void* dense) {
  visit_word(size_of(from.dtype), [&]<std::size_t N>() {
    const auto* base = static_cast<const Word<N>*>(from.data);
    auto* to = static_cast<Word<N>*>(dense);
    for_runs(from.extents, from.strides, begin, count,
             [&](index_t offset, index_t stride, index_t at, index_t run) {
               if (stride == 1) copy_run(base[offset].bytes, to[at].bytes, std::size_t(run) * N);
               else
                 for (index_t i = 0; i < run; ++i) to[at + i] = base[offset + i * stride];
             });
  });
}

/// The reverse of `pack_range`.
inline void unpack_range(const void* dense, const View& to, index_t begin, index_t count) {
  visit_word(size_of(to.dtype), [&]<std::size_t N>() {
    const auto* from = static_cast<const Word<N>*>(dense);
    auto* base = static_cast<Word<N>*>(to.data);
    for_runs(to.extents, to.strides, begin, count,
             [&](index_t offset, index_t stride, index_t at, index_t run) {
               if (stride == 1)
                 copy_run(from[at].bytes, base[offset].bytes, std::size_t(run) * N,
                          std::size_t(to.bytes()));
               else
                 for (index_t i = 0; i < run; ++i) base[offset + i * stride] = from[at + i];
             });
  });
}

/// The address of element `begin` of a contiguous view.
inline const void* element_at(const ConstView& view, index_t begin) {
  return static_cast<const std::byte*>(view.data) + begin * index_t(size_of(view.dtype));
}
inline void* element_at(const View& view, index_t begin) {
  return static_cast<std::byte*>(view.data) + begin * index_t(size_of(view.dtype));
}

/// Copies elements [begin, end), in row-major order, between views of equal extents.
/// @pre the views do not overlap
inline void copy_range(const ConstView& from, const View& to, index_t begin, index_t end) {
  if (begin >= end) return;
  if (to.contiguous()) return pack_range(from, begin, end - begin, element_at(to, begin));
  if (from.contiguous()) return unpack_range(element_at(from, begin), to, begin, end - begin);
  alignas(64) std::byte block[block_bytes];
  const index_t step = block_bytes / index_t(size_of(from.dtype));
  for (; begin < end; begin += step) {
    const index_t count = step < end - begin ? step : end - begin;
    pack_range(from, begin, count, block);
    unpack_range(block, to, begin, count);
  }
}

}  // namespace cleave::inline v0::detail
