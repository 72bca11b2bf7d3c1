// Elements of a distribution on the host.
#pragma once

#include <cleave/core/philox.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::kernels {

/// Draws the elements of a box of a global array.
///
/// @param f      turns the bits of an element into a number
/// @param state  where the draw stands
/// @param box    global indices, of extents `shape`
/// @param out    dense, row-major: as many elements as the box has indices
template <class F, class T>
void random_elements(const F& f, const RandomState& state, const Box& box, const Shape& shape,
                     T* out) {
  if (box.empty() && box.dims() > 0) return;
  const Shape strides = row_major_strides(shape);
  const int last = box.dims() - 1;
  const index_t columns = last < 0 ? 1 : box.extent(last);
  Shape at = box.begin;
  for (;;) {
    index_t first = 0;
    for (int d = 0; d < box.dims(); ++d) first += at[d] * strides[d];
    for (index_t j = 0; j < columns; ++j) *out++ = f(state.bits(first + j));
    int d = last - 1;
    for (; d >= 0; --d) {
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
    if (d < 0) return;
  }
}

}  // namespace cleave::kernels
