// Stores that pass by the caches. What is written so is not read from memory first, and does not
// displace what is in use; it comes from memory when it is read next. Worth it where the
// destination is larger than the cache near the core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cleave::detail {

/// Bytes of a cache line.
inline constexpr int line_bytes = 64;

/// Runs of fewer bytes stay in the caches, for whoever reads them next.
inline constexpr std::size_t streaming_run_bytes = std::size_t(4) << 20;

#if defined(__SSE2__)

/// Writes one line past the caches. @pre `to` is aligned to a line
inline void stream_line(const std::byte* from, std::byte* to) {
  __m128i line[4];
  for (int i = 0; i < 4; ++i) line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, line[i]);
}

/// After streamed lines: all stores that follow come after them.
inline void streaming_fence() { _mm_sfence(); }

#else

inline void stream_line(const std::byte* from, std::byte* to) { std::memcpy(to, from, line_bytes); }
inline void streaming_fence() {}

#endif

/// memcpy; a run past the caches if it, or the longer one that it is part of, is long.
inline void copy_run(const std::byte* from, std::byte* to, std::size_t bytes,
                     std::size_t whole = 0) {
  if (std::max(bytes, whole) < streaming_run_bytes) {
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

}  // namespace cleave::detail
