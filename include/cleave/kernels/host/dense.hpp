// Elements that lie next to each other: those that are there, or copies of them.
#pragma once

#include <cstddef>
#include <memory>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::kernels::detail {

/// Elements without gaps, row-major. @param memory  of a copy, if there is one
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

/// Likewise, elements whose rows along the last dimension have no gaps.
template <class T>
Strided<const T> with_dense_rows(const Strided<const T>& x, std::shared_ptr<void>& memory) {
  const int last = x.extents.dims - 1;
  if (x.strides[last] == 1 || x.extents[last] == 1) return x;
  return densely(x, memory);
}

}  // namespace cleave::kernels::detail
