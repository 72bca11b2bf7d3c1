// Small fixed-capacity vectors of extents, and boxes of indices: the arithmetic that ownership,
// plans and communicators share. Everything is constexpr and allocation-free.
#pragma once

#include <array>
#include <cstddef>
#include <iosfwd>
#include <string>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// Up to `max_dims` extents, offsets or strides; their number is a run-time value.
///
/// Type-erased code uses it in place of `std::array<index_t, Rank>`. Also holds the extents and
/// coordinates of a mesh.
struct Shape {
  std::array<index_t, max_dims> values{};
  int dims = 0;

  constexpr Shape() = default;
  template <std::size_t N>
    requires(N <= std::size_t(max_dims))
  constexpr Shape(const std::array<index_t, N>& extents) : dims(int(N)) {
    for (int i = 0; i < dims; ++i) values[std::size_t(i)] = extents[std::size_t(i)];
  }

  /// `dims` values, all equal to `value`.
  static constexpr Shape filled(int dims, index_t value) {
    Shape shape;
    shape.dims = dims;
    for (int d = 0; d < dims; ++d) shape[d] = value;
    return shape;
  }

  constexpr index_t& operator[](int d) { return values[std::size_t(d)]; }
  constexpr const index_t& operator[](int d) const { return values[std::size_t(d)]; }
  constexpr const index_t* begin() const { return values.data(); }
  constexpr const index_t* end() const { return values.data() + dims; }

  /// The product of all values: 1 without dimensions.
  constexpr index_t product() const {
    index_t n = 1;
    for (const index_t value : *this) n *= value;
    return n;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.dims != b.dims) return false;
    for (int d = 0; d < a.dims; ++d)
      if (a[d] != b[d]) return false;
    return true;
  }
};

/// N numbers as an array.
template <int N>
constexpr std::array<index_t, std::size_t(N)> to_array(const index_t* values) {
  std::array<index_t, std::size_t(N)> result{};
  for (int d = 0; d < N; ++d) result[std::size_t(d)] = values[d];
  return result;
}
/// A Shape as an array of known length. @pre shape.dims == N
template <int N>
constexpr std::array<index_t, std::size_t(N)> to_array(const Shape& shape) {
  return to_array<N>(shape.begin());
}

/// Row-major strides, in elements, of a dense array.
constexpr Shape row_major_strides(const Shape& extents) {
  Shape strides = extents;
  index_t step = 1;
  for (int d = extents.dims - 1; d >= 0; --d) {
    strides[d] = step;
    step *= extents[d];
  }
  return strides;
}

/// The product of the extents of the dimensions in the mask.
constexpr index_t product_over(const Shape& extents, unsigned mask) {
  index_t n = 1;
  for (int d = 0; d < extents.dims; ++d)
    if (mask >> d & 1u) n *= extents[d];
  return n;
}

/// Advances to the next index, row-major, along the dimensions of the mask.
/// @return false after the last index, when these dimensions restart at 0
constexpr bool next_index(const Shape& extents, Shape& at, unsigned mask = ~0u) {
  for (int d = at.dims - 1; d >= 0; --d) {
    if (!(mask >> d & 1u)) continue;
    if (++at[d] < extents[d]) return true;
    at[d] = 0;
  }
  return false;
}

/// "[5, 6]"
std::string to_string(const Shape& shape);

/// Writes `to_string(shape)`, also for extents as `x.shape()` returns them.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Shape& shape) {
  return out << to_string(shape);
}

/// The indices i with begin[d] <= i[d] < end[d] in every dimension d.
struct Box {
  Shape begin{};
  Shape end{};

  /// All indices of an array of that shape.
  static constexpr Box of(const Shape& shape) { return {Shape::filled(shape.dims, 0), shape}; }

  constexpr int dims() const { return begin.dims; }
  constexpr index_t extent(int d) const { return end[d] - begin[d]; }

  constexpr Shape extents() const {
    Shape result = begin;
    for (int d = 0; d < dims(); ++d) result[d] = extent(d);
    return result;
  }

  constexpr bool empty() const {
    for (int d = 0; d < dims(); ++d)
      if (end[d] <= begin[d]) return true;
    return false;
  }

  /// The number of indices; a box without dimensions has one.
  constexpr index_t volume() const {
    index_t n = 1;
    for (int d = 0; d < dims(); ++d) {
      if (extent(d) <= 0) return 0;
      n *= extent(d);
    }
    return n;
  }

  constexpr bool contains(const Box& inner) const {
    if (inner.empty()) return true;
    for (int d = 0; d < dims(); ++d)
      if (inner.begin[d] < begin[d] || inner.end[d] > end[d]) return false;
    return true;
  }

  /// The same indices counted from `origin`.
  constexpr Box relative_to(const Shape& origin) const {
    Box result = *this;
    for (int d = 0; d < dims(); ++d) {
      result.begin[d] -= origin[d];
      result.end[d] -= origin[d];
    }
    return result;
  }

  friend constexpr bool operator==(const Box& a, const Box& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

/// The common indices; an empty box if there are none.
constexpr Box intersect(const Box& a, const Box& b) {
  Box result = a;
  for (int d = 0; d < a.dims(); ++d) {
    if (b.begin[d] > result.begin[d]) result.begin[d] = b.begin[d];
    if (b.end[d] < result.end[d]) result.end[d] = b.end[d];
    if (result.end[d] < result.begin[d]) result.end[d] = result.begin[d];
  }
  return result;
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/core/shape_body.hpp>
#endif
