// Conversion of tensors from and to the memory of std::vector, std::span, std::array and C arrays,
// row-major: a range of T with a size and a pointer to its elements.
//
//     const auto a = to_tensor(values, {2, 3});           // a copy; the values may be const
//     const auto b = as_tensor(values, {2, 3});           // their memory, which must outlive b
//     const auto c = adopt(std::move(values), {2, 3});    // keeps the vector in the tensor
//     const std::vector<float> d = to_vector(a);          // a copy of the elements
//     const std::span<float> e = as_span(a);              // their memory, which a keeps
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The type of the elements of contiguous memory, const if they are.
template <class Range>
using element_of_memory = std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))>;

/// Whether memory outlives the object that refers to it.
template <class Range>
inline constexpr bool is_span = false;
template <class T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;

template <class Values>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// @throws Error unless there is one value for each element
template <std::size_t Rank>
void require_values(const char* operation, std::size_t values,
                    const std::array<index_t, Rank>& extents, std::size_t bytes) {
  const auto elements = index_t(checked_bytes(extents.data(), int(Rank), bytes) / bytes);
  if (index_t(values) != elements)
    throw Error(operation,
                std::to_string(values) + " values for " + std::to_string(elements) + " elements",
                {.shapes = to_string(Shape(extents))});
}

}  // namespace detail

/// Contiguous memory of elements, which may be const: std::vector, std::span, std::array, T[n].
template <class Range>
concept ElementMemory = requires(const Range& range) {
  { std::size(range) } -> std::convertible_to<std::size_t>;
  requires Element<std::remove_const_t<std::remove_pointer_t<decltype(std::data(range))>>>;
} && !is_tensor<std::remove_cvref_t<Range>>;

/// A new row-major tensor with a copy of the values; without extents, of one dimension.
///
/// @throws Error if there are not exactly as many values as elements
template <ElementMemory Range, std::size_t Rank>
auto to_tensor(const Range& values, const std::array<index_t, Rank>& extents) {
  using T = std::remove_const_t<detail::element_of_memory<const Range>>;
  detail::require_values("to_tensor", std::size(values), extents, sizeof(T));
  const Tensor<T, int(Rank)> result(extents);
  strided_copy(ConstView::dense(std::data(values), dtype_of<T>(), Shape(extents)), result.view());
  return result;
}
template <ElementMemory Range, std::size_t Rank>
auto to_tensor(const Range& values, const index_t (&extents)[Rank]) {
  return to_tensor(values, std::to_array(extents));
}
template <ElementMemory Range>
auto to_tensor(const Range& values) {
  return to_tensor(values, std::array{index_t(std::size(values))});
}

/// A row-major tensor of the memory itself, which must outlive all handles.
///
/// @throws Error if there are not exactly as many values as elements
template <class Range, std::size_t Rank>
  requires ElementMemory<std::remove_cvref_t<Range>>
auto as_tensor(Range&& values, const std::array<index_t, Rank>& extents) {
  using E = detail::element_of_memory<Range>;
  using T = std::remove_const_t<E>;
  static_assert(!std::is_const_v<E>,
                "cleave: the values are const, but a Tensor's elements can be written; copy them: "
                "to_tensor(values, extents)");
  static_assert(std::is_lvalue_reference_v<Range> || detail::is_span<std::remove_cvref_t<Range>>,
                "cleave: a tensor of a temporary's memory would dangle; adopt(std::move(values), "
                "extents) keeps a vector");
  detail::require_values("as_tensor", std::size(values), extents, sizeof(T));
  return Tensor<T, int(Rank)>::adopt(const_cast<T*>(std::data(values)), extents);
}
template <class Range, std::size_t Rank>
  requires ElementMemory<std::remove_cvref_t<Range>>
auto as_tensor(Range&& values, const index_t (&extents)[Rank]) {
  return as_tensor(std::forward<Range>(values), std::to_array(extents));
}
template <class Range>
  requires ElementMemory<std::remove_cvref_t<Range>>
auto as_tensor(Range&& values) {
  const std::array extents{index_t(std::size(values))};
  return as_tensor(std::forward<Range>(values), extents);
}

/// A row-major tensor of a vector's elements, without copying: the vector moves into the storage of
/// the tensor, and is destroyed with the last handle.
///
/// @throws Error if there are not exactly as many values as elements
template <class Vector, std::size_t Rank>
  requires(!std::is_pointer_v<std::decay_t<Vector>>)
auto adopt(Vector&& values, const std::array<index_t, Rank>& extents) {
  static_assert(detail::is_vector<Vector>,
                "cleave: adopt takes over a std::vector that may be changed: adopt(std::move(values"
                "), extents); to_tensor copies values, as_tensor refers to them");
  if constexpr (detail::is_vector<Vector>) {
    using T = typename Vector::value_type;
    static_assert(!std::is_same_v<T, bool>,
                  "cleave: a std::vector<bool> holds bits, which a tensor cannot adopt");
    detail::require_values("adopt", values.size(), extents, sizeof(T));
    const auto owner = std::make_shared<Vector>(std::forward<Vector>(values));
    return Tensor<T, int(Rank)>::adopt(owner->data(), extents, owner);
  }
}
template <class Vector, std::size_t Rank>
  requires(!std::is_pointer_v<std::decay_t<Vector>>)
auto adopt(Vector&& values, const index_t (&extents)[Rank]) {
  return adopt(std::forward<Vector>(values), std::to_array(extents));
}

/// A copy of the elements, row-major; of any device.
template <Element T, int Rank, class Device>
std::vector<T> to_vector(const Tensor<T, Rank, Device>& tensor) {
  const Tensor<T, Rank> here = tensor.to(Host{});
  const Tensor<T, Rank> dense = here.contiguous() ? here : here.clone();
  return std::vector<T>(dense.data(), dense.data() + dense.size());
}

/// The elements' memory, row-major, which some handle on the tensor must keep alive.
///
/// @throws Error if the tensor is not contiguous
template <Element T, int Rank, class Device>
std::span<T> as_span(const Tensor<T, Rank, Device>& tensor) {
  static_assert(std::is_same_v<Device, Host>,
                "cleave: the host cannot read elements of a device tensor; copy it first: "
                "to_vector(x)");
  if (!tensor.contiguous())
    throw Error("as_span", "the tensor is not contiguous; clone it, or copy it: to_vector",
                {.shapes = to_string(Shape(tensor.shape()))});
  return {tensor.data(), std::size_t(tensor.size())};
}

}  // namespace cleave::inline v0
