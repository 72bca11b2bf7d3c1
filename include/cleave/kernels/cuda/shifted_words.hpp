// Copies rows of bytes whose alignment differs between source and destination: elements of one or
// two bytes at odd offsets.
//
// A thread loads the aligned words around the four bytes that it copies and shifts them; its stores
// are aligned. Where a word would extend beyond its row, bytes are copied one by one: no other byte
// is read or written.
#pragma once

#include <cstdint>

#include <cleave/core/config.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>

namespace cleave::inline v0::cuda::detail {

/// The offset of an address in its aligned word, in bytes.
CLEAVE_HOST_DEVICE inline int skew_of(const void* address) {
  return int(reinterpret_cast<std::uintptr_t>(address) & 3);
}

/// Loads the words around the four bytes at `from`, for `shifted`; separate, so that several loads
/// are in flight. @param before,after  bytes of the row before `from`, and from `from` to its end
CLEAVE_HOST_DEVICE inline std::uint64_t load_around(const std::uint8_t* from, index_t before,
                                                    index_t after) {
  const int skew = skew_of(from);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(from - skew);
  if (skew == 0 && after >= 4) return words[0];
  if (skew > 0 && before >= skew && after >= 8 - skew)
    return std::uint64_t(words[1]) << 32 | words[0];
  std::uint64_t bytes = 0;
  for (int k = 0; k < 4; ++k)
    if (k < after) bytes |= std::uint64_t(from[k]) << (8 * (skew + k));
  return bytes;
}
/// The four bytes at `from`. @param around  the words from `load_around`
CLEAVE_HOST_DEVICE inline std::uint32_t shifted(std::uint64_t around, const std::uint8_t* from) {
  return std::uint32_t(around >> (8 * skew_of(from)));
}

/// Shorter rows are copied element by element.
inline constexpr index_t least_shifted_row = 32;

/// The number of words that a thread loads before it stores them.
inline constexpr int shifted_ahead = 4;

/// @param loops  array 0 is `to`, array 1 `from`; a step of the innermost loop is an aligned word
///               of `to` that contains bytes of the row, or follows it
/// @param steps  number of steps of all loops
/// @param cols   bytes of a row
template <class Byte>
__global__ void shifted_rows_kernel(Loops<2> loops, std::uint32_t steps, index_t cols, Byte* to,
                                    const Byte* from) {
  const std::uint32_t first = blockIdx.x * (blockDim.x * shifted_ahead) + threadIdx.x;
  Byte* targets[shifted_ahead] = {};  // of whole words
  const Byte* sources[shifted_ahead] = {};
  std::uint64_t around[shifted_ahead] = {};
  for (int p = 0; p < shifted_ahead; ++p) {
    const std::uint32_t step = first + std::uint32_t(p) * blockDim.x;
    if (step >= steps) break;
    const auto at = loops.at(step);
    const index_t word = index_t(at.inner) * 4;
    Byte* const target_row = to + at.offset[0] - word;
    const Byte* const source_row = from + at.offset[1] - word;
    const index_t begin = word - skew_of(target_row);  // in the row
    if (begin >= 0 && begin + 4 <= cols) {
      targets[p] = target_row + begin;
      sources[p] = source_row + begin;
      around[p] = load_around(sources[p], begin, cols - begin);
    } else {
      for (index_t i = begin < 0 ? 0 : begin; i < begin + 4 && i < cols; ++i)
        target_row[i] = source_row[i];
    }
  }
  for (int p = 0; p < shifted_ahead; ++p)
    if (targets[p] != nullptr)
      *reinterpret_cast<std::uint32_t*>(targets[p]) = shifted(around[p], sources[p]);
}

/// Copies rows of bytes. @pre the nest counts bytes, and its innermost loop is contiguous
template <class Byte>
void copy_shifted_rows(const LoopNest<2>& nest, Byte* to, const Byte* from) {
  in_pieces(nest, [&](const LoopNest<2>& piece) {
    LoopNest<2> words = piece;
    words.extents[words.inner()] += 3;  // whatever the offset of a row in its first word
    const Loops<2> loops(words, 4);
    const std::uint32_t steps = loops.size();
    launch_steps("strided_copy", shifted_rows_kernel<Byte>, steps, shifted_ahead, loops, steps,
                 piece.extents[piece.inner()], to, from);
  });
}

}  // namespace cleave::inline v0::cuda::detail
