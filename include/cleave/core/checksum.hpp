// A checksum of a sequence of numbers.
#pragma once

#include <cstdint>

namespace cleave::detail {

/// FNV-1a (Fowler, Noll and Vo), applied to whole numbers instead of bytes.
template <class Numbers>
constexpr std::uint64_t checksum(const Numbers& numbers) {
  std::uint64_t sum = 14695981039346656037u;
  for (const auto number : numbers) sum = (sum ^ std::uint64_t(number)) * 1099511628211u;
  return sum;
}

}  // namespace cleave::detail
