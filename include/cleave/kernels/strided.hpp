// The arguments of kernels: typed pointers with run-time extents and strides, and the device.
//
// A kernel is instantiated per element type and functor only, never per placement or number of
// dimensions. That limits compile time, and a device compiler sees only plain data.
#pragma once

#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::kernels {

/// The device that a kernel runs on, its first argument. Callers name kernels without their
/// namespace, so that overloads for other devices may be declared after the caller.
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

/// A number in place of an array of equal elements.
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

/// A read-only view of the elements of a tensor.
template <class T, int Rank, class Device>
Strided<const T> read(const Tensor<T, Rank, Device>& tensor) {
  return {tensor.data(), Shape(tensor.shape()), Shape(tensor.strides())};
}

/// A writable view of the elements of a tensor.
template <class T, int Rank, class Device>
Strided<T> write(const Tensor<T, Rank, Device>& tensor) {
  return {tensor.data(), Shape(tensor.shape()), Shape(tensor.strides())};
}

/// The same of a view. @pre T is its element type, perhaps const
template <class T>
Strided<T> elements_of(const View& view) {
  return {static_cast<T*>(view.data), view.extents, view.strides};
}

}  // namespace cleave::inline v0::kernels
