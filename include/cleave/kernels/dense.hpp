// Arrays made contiguous: the array itself if it already is, else a copy.
#pragma once

#include <cstddef>
#include <memory>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::kernels {

/// Row-major, contiguous elements. @param memory  set to the owner of the copy, if one is made
template <class Device, class T>
Strided<const T> densely(On<Device> on, const Strided<const T>& x, std::shared_ptr<void>& memory) {
  const Shape steps = row_major_strides(x.extents);
  if (ConstView{x.data, dtype_of<T>(), x.extents, x.strides}.contiguous())
    return {x.data, x.extents, steps};
  memory = allocate_bytes(Device{}, std::size_t(x.extents.product()) * sizeof(T));
  T* const data = static_cast<T*>(memory.get());
  copy_elements(on, x, Strided<T>{data, x.extents, steps});
  return {data, x.extents, steps};
}

/// Likewise, but only the rows along the last dimension need to be contiguous.
template <class Device, class T>
Strided<const T> with_dense_rows(On<Device> on, const Strided<const T>& x,
                                 std::shared_ptr<void>& memory) {
  const int last = x.extents.dims - 1;
  if (x.strides[last] == 1 || x.extents[last] == 1) return x;
  return densely(on, x, memory);
}

}  // namespace cleave::inline v0::kernels
