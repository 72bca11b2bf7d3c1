// Arrays made contiguous: the array itself if it already is, else a copy.
#pragma once

#include <cstddef>
#include <memory>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::kernels::detail {

/// Row-major, contiguous elements. @param memory  set to the owner of the copy, if one is made
template <class T>
Strided<const T> densely(const Strided<const T>& x, std::shared_ptr<void>& memory) {
  const Shape dense = row_major_strides(x.extents);
  if (dense == x.strides) return x;
  memory = allocate_bytes(Host{}, std::size_t(x.extents.product()) * sizeof(T));
  auto* const to = static_cast<T*>(memory.get());
  strided_copy({const_cast<T*>(x.data), dtype_of<T>(), x.extents, x.strides},
               View::dense(to, dtype_of<T>(), x.extents));
  return {to, x.extents, dense};
}

/// Likewise, but only the rows along the last dimension need to be contiguous.
template <class T>
Strided<const T> with_dense_rows(const Strided<const T>& x, std::shared_ptr<void>& memory) {
  const int last = x.extents.dims - 1;
  if (x.strides[last] == 1 || x.extents[last] == 1) return x;
  return densely(x, memory);
}

}  // namespace cleave::kernels::detail
