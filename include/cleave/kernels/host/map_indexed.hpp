// Functions of global indices and elements on the host.
#pragma once

#include <cleave/core/shape.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

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
  const index_t start = cleave::detail::offset_of(box.begin, steps);
  const auto step = [last](const Shape& strides) { return last < 0 ? 0 : strides[last]; };
  const unsigned row = last < 0 ? 0 : 1u << last;
  detail::loops_besides(row, out.extents, steps, out.strides, in.strides...)
      .each([&](index_t first, index_t to, auto... from) {
        for (index_t j = 0; j < columns; ++j)
          out.data[to + j * step(out.strides)] =
              f(start + first + j, in.data[from + j * step(in.strides)]...);
      });
}

}  // namespace cleave::inline v0::kernels
