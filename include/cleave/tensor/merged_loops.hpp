// Nested loops over strided arrays, outermost first: dimensions that continue each other in all
// arrays are merged into one loop.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/core/shape.hpp>

namespace cleave::inline v0::detail {

constexpr index_t magnitude(index_t stride) { return stride < 0 ? -stride : stride; }

/// The dimensions by descending strides of the first array; ties by those of the next.
template <std::size_t N>
constexpr Shape descending_order(int dims, const std::array<const Shape*, N>& strides) {
  const auto inside = [&](int d, int e) {
    for (const Shape* of : strides)
      if (magnitude((*of)[d]) != magnitude((*of)[e]))
        return magnitude((*of)[d]) < magnitude((*of)[e]);
    return false;
  };
  Shape order = Shape::filled(dims, 0);
  for (int d = 0; d < dims; ++d) {
    int at = d;
    for (; at > 0 && inside(int(order[at - 1]), d); --at) order[at] = order[at - 1];
    order[at] = d;
  }
  return order;
}

/// Loops over N arrays of the same extents; strides in elements.
template <int N>
struct MergedLoops {
  int dims = 0;
  index_t extents[max_dims + 2];  ///< two more, for appended loops of extent 1
  index_t strides[N][max_dims + 2];

  /// Adds an inner loop, or merges it with the innermost so far; ignores a loop of extent 1.
  void push(index_t extent, const std::array<index_t, std::size_t(N)>& of) {
    if (extent != 1) merge(extent, of);
  }

  /// The same for any extent.
  void merge(index_t extent, const std::array<index_t, std::size_t(N)>& of) {
    bool continues = dims > 0;
    for (int k = 0; continues && k < N; ++k)
      continues = strides[k][dims - 1] == of[std::size_t(k)] * extent;
    append(continues ? extents[--dims] * extent : extent, of);
  }

  /// Adds an inner loop of any extent, unmerged.
  void append(index_t extent, const std::array<index_t, std::size_t(N)>& of) {
    for (int k = 0; k < N; ++k) strides[k][dims] = of[std::size_t(k)];
    extents[dims++] = extent;
  }
};

}  // namespace cleave::inline v0::detail
