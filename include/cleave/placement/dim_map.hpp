// Which indices of an operand a range of indices of a result reads, in one dimension: stencils,
// slices, padding, windows, convolutions, transfers between grids. Constexpr arithmetic.
#pragma once

#include <cstdint>

#include <cleave/placement/ownership.hpp>

namespace cleave {

/// What a read beyond the first or the last index means.
enum class Beyond : std::uint8_t {
  clip,  ///< nothing is read there
  wrap,  ///< the dimension is periodic
};

/// Index i of the result reads the indices floor((num * i + lo) / den) .. floor((num * i + hi) /
/// den) of the operand.
///
/// A stencil of reach 2 is {1, 1, -2, 2}, every third element {3, 1, 0, 0}, a flip of n elements
/// {-1, 1, n - 1, n - 1}, linear interpolation to a grid twice as fine {1, 2, 0, 1}.
///
/// @pre den > 0, lo <= hi
struct DimMap {
  index_t num = 1, den = 1;
  index_t lo = 0, hi = 0;
  Beyond beyond = Beyond::clip;

  friend constexpr bool operator==(const DimMap&, const DimMap&) = default;
};

/// a / b, rounded down. @pre b > 0
constexpr index_t floor_divide(index_t a, index_t b) { return a / b - (a % b < 0); }

/// From the first to the last index that the results in a range read, neither clipped nor wrapped.
/// Empty for an empty range.
constexpr IndexRange image(const DimMap& map, IndexRange results) {
  if (results.size() <= 0) return {0, 0};
  index_t least = map.num * results.begin, most = map.num * (results.end - 1);
  if (map.num < 0) {
    const index_t other = least;
    least = most, most = other;
  }
  return {floor_divide(least + map.lo, map.den), floor_divide(most + map.hi, map.den) + 1};
}

/// The results, of any extent, whose image can contain an index of a range: those that read one, or
/// the two neighbours between whose indices the range is. @pre num != 0
constexpr IndexRange readers(const DimMap& map, IndexRange read) {
  if (read.size() <= 0) return {0, 0};
  index_t least = read.begin * map.den - map.hi, most = read.end * map.den - 1 - map.lo;
  if (map.num < 0) {
    const index_t other = least;
    least = -most, most = -other;
  }
  const index_t step = map.num < 0 ? -map.num : map.num;
  const IndexRange found{-floor_divide(-least, step), floor_divide(most, step) + 1};
  return found.size() > 0 ? found : IndexRange{found.begin - 1, found.begin + 1};
}

}  // namespace cleave
