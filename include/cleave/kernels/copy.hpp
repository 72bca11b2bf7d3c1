// Copies and fills of strided arrays on any device, for kernels that move elements.
#pragma once

#include <string>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::kernels {

/// Copies the elements of `from` to the same indices of `to`. @pre equal extents, no overlap
template <class Device, class T>
void copy_elements(On<Device>, const Strided<const T>& from, const Strided<T>& to) {
  if (to.extents.product() == 0) return;
  strided_copy(Device{}, ConstView{from.data, dtype_of<T>(), from.extents, from.strides},
               View{to.data, dtype_of<T>(), to.extents, to.strides});
}

/// Sets all elements to `value`.
template <class Device, class T>
void fill_elements(On<Device>, const Strided<T>& to, const T& value) {
  if (to.extents.product() == 0) return;
  strided_fill(Device{}, View{to.data, dtype_of<T>(), to.extents, to.strides}, value);
}

/// data + offset, or null if `data` is null, as it may be for an empty array.
template <class T>
T* place_behind(T* data, index_t offset) {
  return data == nullptr ? data : data + offset;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_beyond(int d, index_t extent,
                                                                index_t first, index_t last) {
  throw Error("kernel", "reads or writes indices " + std::to_string(first) + " to " +
                            std::to_string(last) + " of dimension " + std::to_string(d) +
                            ", of which it has " + std::to_string(extent) +
                            ": is the read_map of the operation too short?");
}

/// The `count` elements first, first + step, .. of dimension d.
/// @throws Error if x does not have them, unless there are no elements along other dimensions
template <class T>
Strided<T> every(const Strided<T>& x, int d, index_t first, index_t step, index_t count) {
  const index_t last = first + (count - 1) * step, extent = x.extents[d];
  if (count > 0 && (first < 0 || first >= extent || last < 0 || last >= extent)) [[unlikely]]
    if (product_over(x.extents, ~(1u << d)) > 0) throw_beyond(d, extent, first, last);
  Strided<T> part = x;
  if (count > 0) part.data = place_behind(x.data, first * x.strides[d]);
  part.extents[d] = count;
  part.strides[d] *= step;
  return part;
}

/// The array at one index of dimension d, without that dimension.
template <class T>
Strided<T> at_index(const Strided<T>& x, int d, index_t index) {
  Strided<T> part{place_behind(x.data, index * x.strides[d]), {}, {}};
  for (int k = 0; k < x.extents.dims; ++k) {
    if (k == d) continue;
    part.extents[part.extents.dims++] = x.extents[k];
    part.strides[part.strides.dims++] = x.strides[k];
  }
  return part;
}

/// y[i] = x[(first + i) mod period] along dimension d.
///
/// @pre x has a period, or all indices below its extent that are read
template <class Device, class T>
void copy_periods(On<Device> on, const Strided<const T>& x, const Strided<T>& y, int d,
                  index_t first, index_t period) {
  if (y.extents.product() == 0) return;
  for (index_t done = 0; done < y.extents[d];) {
    const index_t from = ((first + done) % period + period) % period;
    const index_t left = y.extents[d] - done, there = x.extents[d] - from;
    const index_t here = left < there ? left : there;
    copy_elements(on, every(x, d, from, 1, here), every(y, d, done, 1, here));
    done += here;
  }
}

/// Writes the slices of x along dimension d, which is not sharded in x, to every step-th global
/// index of y from `begin` on. Indices outside this rank's part of y are skipped.
///
/// @param first  the global index along d of the first elements of y
template <class Device, class T>
void place_slices(On<Device> on, const Strided<const T>& x, const Strided<T>& y, int d,
                  index_t first, index_t begin, index_t step = 1) {
  // the x[i] with first <= begin + i * step < end
  const index_t end = first + y.extents[d], n = x.extents[d];
  const auto at_least = [&](index_t place) {
    return place <= begin ? 0 : (place - begin + step - 1) / step;
  };
  const index_t from = at_least(first) < n ? at_least(first) : n;
  const index_t to = at_least(end) < n ? at_least(end) : n;
  if (from >= to) return;
  copy_elements(on, every(x, d, from, 1, to - from),
                every(y, d, begin + from * step - first, step, to - from));
}

}  // namespace cleave::inline v0::kernels
