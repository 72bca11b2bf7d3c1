// Functions of global indices and elements on the host.
#pragma once

#include <cleave/core/shape.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::kernels {

/// out[i] = f(index, in[i]..), where `index` is the element's row-major index in the global array.
///
/// @param f      callable with an index_t and an element of every input
/// @param box    global indices of the elements
/// @param shape  global extents
/// @param out    of the box's extents; may be the same view as an input, must not overlap otherwise
/// @param in     likewise
template <class F, class T, class... In>
void map_indexed(On<Host>, const F& f, const Box& box, const Shape& shape, const Strided<T>& out,
                 const Strided<const In>&... in) {
  if (out.extents.product() == 0) return;
  const Shape steps = row_major_strides(shape);
  const int last = out.extents.dims - 1;
  const index_t columns = last < 0 ? 1 : out.extents[last];
  const auto step = [last](const Shape& strides) { return last < 0 ? 0 : strides[last]; };
  Shape at = Shape::filled(out.extents.dims, 0);
  do {
    index_t first = 0;
    for (int d = 0; d < at.dims; ++d) first += (box.begin[d] + at[d]) * steps[d];
    const auto row = [&](const Shape& strides) {
      index_t offset = 0;
      for (int d = 0; d < last; ++d) offset += at[d] * strides[d];
      return offset;
    };
    T* const to = out.data + row(out.strides);
    [&](const In*... from) {
      for (index_t j = 0; j < columns; ++j)
        to[j * step(out.strides)] = f(first + j, from[j * step(in.strides)]...);
    }(in.data + row(in.strides)...);
  } while (next_index(out.extents, at, (1u << at.dims >> 1) - 1));  // all but the last dimension
}

}  // namespace cleave::kernels
