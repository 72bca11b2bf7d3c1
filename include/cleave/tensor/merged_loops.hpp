// Nested loops over strided arrays, outermost first: dimensions that continue each other in all
// arrays are one loop.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/core/shape.hpp>

namespace cleave::detail {

/// The loops over N arrays of the same extents; strides in elements.
template <int N>
struct MergedLoops {
  int dims = 0;
  index_t extents[max_dims + 2];  ///< two more for those who append loops of one step
  index_t strides[N][max_dims + 2];

  /// Adds an inner loop, or makes it one with the innermost so far.
  void push(index_t extent, const std::array<index_t, std::size_t(N)>& of) {
    if (extent == 1) return;
    bool continues = dims > 0;
    for (int k = 0; continues && k < N; ++k)
      continues = strides[k][dims - 1] == of[std::size_t(k)] * extent;
    append(continues ? extents[--dims] * extent : extent, of);
  }

  /// Adds an inner loop, whatever its extent.
  void append(index_t extent, const std::array<index_t, std::size_t(N)>& of) {
    for (int k = 0; k < N; ++k) strides[k][dims] = of[std::size_t(k)];
    extents[dims++] = extent;
  }
};

}  // namespace cleave::detail
