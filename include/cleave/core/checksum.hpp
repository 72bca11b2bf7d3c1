// A checksum of a sequence of numbers.
#pragma once

#include <cstdint>

namespace cleave::inline v0::detail {

/// FNV-1a (Fowler, Noll and Vo), applied to whole numbers instead of bytes. High bits of a number
/// also change the low bits of the sum. Checkpoints store such sums.
struct Checksum {
  std::uint64_t sum = 14695981039346656037u;

  constexpr void add(std::uint64_t number) {
    sum = (sum ^ number) * 1099511628211u;
    sum ^= sum >> 32;
  }
};

template <class Numbers>
constexpr std::uint64_t checksum(const Numbers& numbers) {
  Checksum result;
  for (const auto number : numbers) result.add(std::uint64_t(number));
  return result.sum;
}

}  // namespace cleave::inline v0::detail
