// Elements that a thread loads and stores at once: up to 16 bytes per access.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::cuda::detail {

/// The widest access of a thread, in bytes.
inline constexpr std::size_t access_bytes = 16;

constexpr std::size_t alignment_of_pack(std::size_t bytes) {
  return bytes < access_bytes ? bytes : access_bytes;
}

/// V neighbours, aligned as the access that moves them: complex<double>, too, at 16 bytes.
template <class T, int V>
struct alignas(alignment_of_pack(V * sizeof(T))) Pack {
  T values[V];
};

/// V elements at `from`. @pre aligned as packs are
template <int V, class T>
CLEAVE_HOST_DEVICE Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}

template <int V, class T>
CLEAVE_HOST_DEVICE void store_pack(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

/// Up to V elements along a loop: one access where all of them are there and lie as packs do, else
/// one by one.
template <int V>
struct Run {
  bool packed;     ///< whether full runs are packs
  index_t stride;  ///< from one element to the next
  index_t count;   ///< how many are there; may be more than V

  CLEAVE_HOST_DEVICE bool full() const { return count >= V; }

  template <class T>
  CLEAVE_HOST_DEVICE Pack<T, V> load(const T* from) const {
    if (packed && full()) return load_pack<V>(from);
    Pack<T, V> pack{};
    for (int k = 0; k < V; ++k)
      if (k < count) pack.values[k] = from[k * stride];
    return pack;
  }
  template <class T>
  CLEAVE_HOST_DEVICE void store(T* to, const Pack<T, V>& pack) const {
    if (packed && full()) return store_pack(to, pack);
    for (int k = 0; k < V; ++k)
      if (k < count) to[k * stride] = pack.values[k];
  }
};

/// Whether packs of V elements may be accessed at `data` and at all multiples of V behind it.
template <int V, class T>
bool aligned_for(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<T, V>) == 0;
}

/// How many elements of the largest of some types fill an access. With more of them a pack would
/// take two accesses, and threads that follow each other would use half of each sector of memory.
template <class... T>
constexpr int pack_width() {
  std::size_t most = 1;
  ((most = sizeof(T) > most ? sizeof(T) : most), ...);
  return most < access_bytes ? int(access_bytes / most) : 1;
}

/// How many packs a thread has under way at once, so that enough of memory is asked for.
template <int V, class... T>
constexpr int packs_per_thread() {
  std::size_t most = 1;
  ((most = sizeof(T) > most ? sizeof(T) : most), ...);
  const std::size_t packs = 2 * access_bytes / (V * most);
  return int(packs < 1 ? 1 : packs < 4 ? packs : 4);
}

template <int N>
constexpr auto word_of() {
  if constexpr (N == 1) return std::uint8_t{};
  else if constexpr (N == 2) return std::uint16_t{};
  else if constexpr (N == 4) return std::uint32_t{};
  else if constexpr (N == 8) return std::uint64_t{};
  else if constexpr (N == 16) return Pack<std::uint64_t, 2>{};
}
/// An unsigned integer of N bytes; for 16, a pair of them that one access moves.
template <int N>
using word_t = decltype(word_of<N>());

}  // namespace cleave::cuda::detail
