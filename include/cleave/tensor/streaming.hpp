// Non-temporal stores, which bypass the caches: they do not read lines from memory first and do not
// evict data in use, but the next read of the data comes from memory. Worthwhile if the destination
// is larger than the core's private cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cleave::inline v0::detail {

/// Bytes of a cache line.
inline constexpr int line_bytes = 64;

/// Arrays of fewer bytes stay in the caches, for the next reader.
inline std::size_t streaming_array_bytes = std::size_t(4) << 20;
/// The same where several processes share the caches of a node.
inline constexpr std::size_t shared_streaming_array_bytes = std::size_t(2) << 20;
/// Shorter runs are not worth a fence and the ends of lines.
inline constexpr std::size_t streaming_run_bytes = std::size_t(8) << 10;

#if defined(__SSE2__)

/// Writes one line, bypassing the caches. @pre `to` is aligned to a line
inline void stream_line(const std::byte* from, std::byte* to) {
  __m128i line[4];
  for (int i = 0; i < 4; ++i) line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, line[i]);
}

/// Orders streamed lines before all later stores.
inline void streaming_fence() { _mm_sfence(); }

#else

inline void stream_line(const std::byte* from, std::byte* to) { std::memcpy(to, from, line_bytes); }
inline void streaming_fence() {}

#endif

/// memcpy that bypasses the caches if the run, or the array that it is written to, is long.
/// @param array  bytes of the array that is being written; the run alone if that is longer
inline void copy_run(const std::byte* from, std::byte* to, std::size_t bytes,
                     std::size_t array = 0) {
  if (bytes < streaming_run_bytes || std::max(bytes, array) < streaming_array_bytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t rest = reinterpret_cast<std::uintptr_t>(to) % line_bytes;
  std::size_t at = rest == 0 ? 0 : std::min(line_bytes - rest, bytes);
  std::memcpy(to, from, at);
  for (; at + line_bytes <= bytes; at += line_bytes) stream_line(from + at, to + at);
  streaming_fence();
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace cleave::inline v0::detail
