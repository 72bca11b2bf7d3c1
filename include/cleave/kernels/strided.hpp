// What kernels are given: typed pointers with run-time extents and strides, and the device.
//
// A kernel is instantiated per element type and functor only, never per placement or number of
// dimensions: that keeps compile time flat, and lets a device compiler see nothing but plain data.
#pragma once

#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::kernels {

/// Where a kernel runs, passed first. A caller names the kernel without its namespace, so that
/// overloads for other devices may be declared later than the caller.
template <class Device>
struct On {};

/// Elements at `data`, index i at offset sum(i[d] * strides[d]); a stride of 0 repeats an element.
template <class T>
struct Strided {
  using Element = std::remove_const_t<T>;
  T* data = nullptr;
  Shape extents{};
  Shape strides{};
};

/// A number in the place of an array that repeats it.
template <class T>
struct Scalar {
  using Element = T;
  T value{};
};

template <class T>
const Shape& strides_of(const Strided<T>& in) {
  return in.strides;
}
template <class T>
const Shape& strides_of(const Scalar<T>&) {
  static constexpr Shape zeros{};
  return zeros;
}

/// The elements of a tensor, to read.
template <class T, int Rank, class Device>
Strided<const T> read(const Tensor<T, Rank, Device>& tensor) {
  return {tensor.data(), Shape(tensor.shape()), Shape(tensor.strides())};
}

/// The elements of a tensor, to write.
template <class T, int Rank, class Device>
Strided<T> write(const Tensor<T, Rank, Device>& tensor) {
  return {tensor.data(), Shape(tensor.shape()), Shape(tensor.strides())};
}

}  // namespace cleave::kernels
