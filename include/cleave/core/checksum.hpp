// A number that tells sequences of numbers from each other.
#pragma once

#include <cstdint>

namespace cleave::detail {

/// FNV-1a (Fowler, Noll and Vo), a number in the place of a byte.
template <class Numbers>
constexpr std::uint64_t checksum(const Numbers& numbers) {
  std::uint64_t sum = 14695981039346656037u;
  for (const auto number : numbers) sum = (sum ^ std::uint64_t(number)) * 1099511628211u;
  return sum;
}

}  // namespace cleave::detail
