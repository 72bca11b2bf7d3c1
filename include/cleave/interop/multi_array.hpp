// Tensors and Boost.MultiArray's arrays, references and views of the same memory. Needs Boost's
// headers (Debian: libboost-dev).
//
//     boost::multi_array<double, 3> values(boost::extents[8][9][10]);
//     const auto u = from_local(multi_array::as_tensor(values), mesh, Shard<0>{});
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/multi_array.hpp>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::multi_array {

/// A tensor of the elements of a boost::multi_array, multi_array_ref or view of either, without a
/// copy, in its storage order, with indices from 0.
///
/// @param owner  held until the last handle is destroyed; null if the elements outlive the tensor
template <class Array>
auto as_tensor(Array&& x, std::shared_ptr<void> owner = nullptr) {
  using A = std::remove_cvref_t<Array>;
  using T = typename A::element;
  static_assert(Element<T>,
                "cleave: multi_array::as_tensor: a Tensor has no elements of this type");
  static_assert(!std::is_const_v<std::remove_pointer_t<decltype(x.origin())>>,
                "cleave: multi_array::as_tensor: the elements are const, but a Tensor's can be "
                "written");
  constexpr std::size_t rank = A::dimensionality;
  std::array<index_t, rank> extents{}, strides{};
  T* first = x.origin();  // where all indices are 0, which need not exist
  for (std::size_t d = 0; d < rank; ++d) {
    extents[d] = index_t(x.shape()[d]);
    strides[d] = index_t(x.strides()[d]);
    first += x.index_bases()[d] * x.strides()[d];
  }
  static_assert(
      std::is_lvalue_reference_v<Array> || !std::is_same_v<A, boost::multi_array<T, rank>>,
      "cleave: multi_array::as_tensor: a tensor of a temporary's memory would dangle");
  return Tensor<T, int(rank)>::adopt(first, extents, strides, std::move(owner));
}

/// A reference to a tensor's elements, without a copy, in row-major order. The tensor must outlive
/// it.
/// @throws Error unless the tensor is contiguous: a multi_array_ref has no strides of its own
template <class T, int Rank>
auto reference(const Tensor<T, Rank>& x) {
  static_assert(Rank > 0, "cleave: multi_array::reference: an array has at least one dimension");
  if (!x.contiguous())
    throw Error("multi_array::reference", "the tensor is not contiguous; clone() makes one that is",
                {.shapes = to_string(Shape(x.shape()))});
  return boost::multi_array_ref<T, std::size_t(Rank)>(x.data(), x.shape());
}

}  // namespace cleave::inline v0::multi_array
