// Which indices of an operand a range of indices of a result reads, in one dimension: stencils,
// slices, padding, windows, convolutions, transfers between grids. Constexpr arithmetic.
#pragma once

#include <cstdint>

#include <cleave/placement/ownership.hpp>

namespace cleave::inline v0 {

/// What a read beyond the first or the last index means.
enum class Beyond : std::uint8_t {
  clip,     ///< nothing is read there
  wrap,     ///< the dimension is periodic
  repeat,   ///< likewise; at most one period is read: elements that are read again are not repeated
  reflect,  ///< the dimension is mirrored at its first and last index, by less than its extent
  nearest,  ///< the first or the last index is read
};

/// Index i of the result reads the indices floor((num * i + lo) / den) .. floor((num * i + hi) /
/// den) of the operand.
///
/// A stencil of reach 2 is {1, 1, -2, 2}, every third element {3, 1, 0, 0}, a flip of n elements
/// {-1, 1, n - 1, n - 1}, linear interpolation to a grid twice as fine {1, 2, 0, 1}. Where lo > hi,
/// some results read nothing: a zero after every element is {1, 2, 1, 0}.
///
/// @pre den > 0, lo < hi + den
struct DimMap {
  index_t num = 1, den = 1;
  index_t lo = 0, hi = 0;
  Beyond beyond = Beyond::clip;

  friend constexpr bool operator==(const DimMap&, const DimMap&) = default;
};

/// a / b, rounded down. @pre b > 0
CLEAVE_HOST_DEVICE constexpr index_t floor_divide(index_t a, index_t b) {
  return a / b - (a % b < 0);
}

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

/// Whether reads beyond the edges count on in the next period.
constexpr bool is_periodic(Beyond beyond) {
  return beyond == Beyond::wrap || beyond == Beyond::repeat;
}

/// The indices that are read for an image, of an operand of n elements: mirrored indices and
/// nearest ones lie in [0, n); others count on beyond the edges.
constexpr IndexRange range_of_reads(Beyond beyond, index_t n, IndexRange image) {
  const bool is_inside = image.begin >= 0 && image.end <= n;
  if (beyond == Beyond::clip || beyond == Beyond::wrap || image.size() <= 0 || is_inside)
    return image;
  if (beyond == Beyond::repeat)
    return {image.begin, image.size() > n ? image.begin + n : image.end};
  if (n == 0) return {0, 0};
  index_t least = n - 1, most = 0;
  const auto reads = [&](index_t begin, index_t last) {  // ends of indices that are there
    begin = begin < 0 ? 0 : begin, last = last > n - 1 ? n - 1 : last;
    if (begin > last) return;
    least = begin < least ? begin : least, most = last > most ? last : most;
  };
  const index_t last = image.end - 1;
  reads(image.begin, last);
  if (beyond == Beyond::nearest) {
    if (image.begin < 0) reads(0, 0);
    if (last > n - 1) reads(n - 1, n - 1);
  } else {
    if (image.begin < 0) reads(last < 0 ? -last : 0, -image.begin);
    if (last > n - 1)
      reads(2 * (n - 1) - last, image.begin > n - 1 ? 2 * (n - 1) - image.begin : n - 1);
  }
  return {least, most + 1};
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

/// Calls f(results) for ranges of results, of `results` in all, that together contain those that
/// read an index of a range of an operand of n elements. @pre map.num != 0
template <class F>
constexpr void each_readers(const DimMap& map, index_t n, index_t results, IndexRange read,
                            const F& f) {
  const IndexRange all = image(map, {0, results});
  if (is_periodic(map.beyond)) {
    for (index_t k = floor_divide(all.begin, n); k <= floor_divide(all.end - 1, n); ++k)
      f(readers(map, {read.begin + k * n, read.end + k * n}));
    return;
  }
  f(readers(map, read));
  if (map.beyond == Beyond::reflect) {
    f(readers(map, {1 - read.end, 1 - read.begin}));
    f(readers(map, {2 * n - 1 - read.end, 2 * n - 1 - read.begin}));
  } else if (map.beyond == Beyond::nearest) {
    if (read.begin == 0 && all.begin < 0) f(readers(map, {all.begin, 0}));
    if (read.end == n && all.end > n) f(readers(map, {n, all.end}));
  }
}

}  // namespace cleave::inline v0
