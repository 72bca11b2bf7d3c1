// Finds elements of a list by their hashes; in constant expressions, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cleave::inline v0::spmd::detail {

/// The places of a list's elements, by hash. Elements are appended only.
class HashIndex {
 public:
  constexpr HashIndex() : slots_(16, -1) {}

  /// @param is_it  whether the element at a place is the one
  /// @return       its place, or -1
  template <class Is>
  constexpr int find(std::uint64_t hash, const Is& is_it) const {
    for (std::size_t s = hash & (slots_.size() - 1); slots_[s] >= 0;
         s = (s + 1) & (slots_.size() - 1))
      if (hashes_[std::size_t(slots_[s])] == hash && is_it(slots_[s])) return slots_[s];
    return -1;
  }

  /// Adds the element at the next place: 0, 1, ..
  constexpr void add(std::uint64_t hash) {
    hashes_.push_back(hash);
    if (2 * hashes_.size() > slots_.size()) {
      slots_.assign(2 * slots_.size(), -1);
      for (std::size_t i = 0; i < hashes_.size(); ++i) put(int(i));
    } else {
      put(int(hashes_.size()) - 1);
    }
  }

 private:
  constexpr void put(int place) {
    std::size_t s = hashes_[std::size_t(place)] & (slots_.size() - 1);
    while (slots_[s] >= 0) s = (s + 1) & (slots_.size() - 1);
    slots_[s] = place;
  }

  std::vector<std::uint64_t> hashes_{};
  std::vector<int> slots_;
};

}  // namespace cleave::inline v0::spmd::detail
