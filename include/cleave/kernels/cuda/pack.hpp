// Vectorised loads and stores: packs of elements that a thread accesses at once, up to 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::cuda::detail {

/// The widest access of a thread, in bytes.
inline constexpr std::size_t access_bytes = 16;

constexpr std::size_t alignment_of_pack(std::size_t bytes) {
  return bytes < access_bytes ? bytes : access_bytes;
}

/// V contiguous elements, with the alignment of the access; 16 bytes for complex<double> too.
template <class T, int V>
struct alignas(alignment_of_pack(V * sizeof(T))) Pack {
  T values[V];
};

/// The V elements at `from`. @pre `from` has the alignment of a pack
template <int V, class T>
CLEAVE_HOST_DEVICE Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}

template <int V, class T>
CLEAVE_HOST_DEVICE void store_pack(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

/// Up to V elements along a loop: one access if there are V and they form an aligned pack, else one
/// access per element.
template <int V>
struct Run {
  bool packed;     ///< whether full runs are packs
  index_t stride;  ///< between elements
  index_t count;   ///< number of elements left; may be more than V

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

/// Whether packs of V elements may be accessed at `data` and at all multiples of V after it.
template <int V, class T>
CLEAVE_HOST_DEVICE bool aligned_for(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<T, V>) == 0;
}

/// The number of elements of the largest type that fill an access. A wider pack would need two
/// accesses, in each of which consecutive threads would use half of every memory sector.
template <class... T>
constexpr int pack_width() {
  std::size_t most = 1;
  ((most = sizeof(T) > most ? sizeof(T) : most), ...);
  return most < access_bytes ? int(access_bytes / most) : 1;
}

/// The number of packs that a thread loads before it uses them, to have enough loads in flight.
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
/// An unsigned integer of N bytes; for 16, a pair of 8-byte integers moved by one access.
template <int N>
using word_t = decltype(word_of<N>());

}  // namespace cleave::inline v0::cuda::detail
