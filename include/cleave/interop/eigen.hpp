// Tensors and Eigen's matrices, maps and blocks of the same memory. Needs Eigen (Debian:
// libeigen3-dev).
//
//     const auto a = from_local(eigen::as_tensor(matrix), mesh, Shard<0>{});
//     const double trace = eigen::map(a.to_local()).trace();
#pragma once

#include <Eigen/Core>
#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::eigen {

/// A tensor of the elements of a matrix, map or block, without a copy, with its strides: of one
/// dimension for Eigen's vectors, else of two.
///
/// @param owner  held until the last handle is destroyed; null if the elements outlive the tensor
template <class Derived>
auto as_tensor(Eigen::DenseBase<Derived>& x, std::shared_ptr<void> owner = nullptr) {
  using T = typename Derived::Scalar;
  static_assert(Element<T>, "cleave: eigen::as_tensor: a Tensor has no elements of this type");
  static_assert(
      (Derived::Flags & Eigen::DirectAccessBit) != 0 && (Derived::Flags & Eigen::LvalueBit) != 0,
      "cleave: eigen::as_tensor: the expression has no memory that can be written; "
      "evaluate it to a matrix first");
  Derived& m = x.derived();
  if constexpr (Derived::IsVectorAtCompileTime)
    return Tensor<T, 1>::adopt(m.data(), {index_t(m.size())}, {index_t(m.innerStride())},
                               std::move(owner));
  else
    return Tensor<T, 2>::adopt(m.data(), {index_t(m.rows()), index_t(m.cols())},
                               {index_t(m.rowStride()), index_t(m.colStride())}, std::move(owner));
}
/// The same of a temporary map or block, whose memory is another object's.
template <class Derived>
auto as_tensor(Eigen::DenseBase<Derived>&& x, std::shared_ptr<void> owner = nullptr) {
  static_assert(!std::is_base_of_v<Eigen::PlainObjectBase<Derived>, Derived>,
                "cleave: eigen::as_tensor: a tensor of a temporary's memory would dangle");
  return eigen::as_tensor(x, std::move(owner));
}

/// A map of a tensor of one dimension, without a copy: a column. The tensor must outlive it.
template <class T>
auto map(const Tensor<T, 1>& x) {
  return Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>, Eigen::Unaligned, Eigen::InnerStride<>>(
      x.data(), Eigen::Index(x.extent(0)), Eigen::InnerStride<>(Eigen::Index(x.strides()[0])));
}
/// A map of a matrix, without a copy, with its strides. The tensor must outlive it.
template <class T>
auto map(const Tensor<T, 2>& x) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  return Eigen::Map<Matrix, Eigen::Unaligned, Stride>(
      x.data(), Eigen::Index(x.extent(0)), Eigen::Index(x.extent(1)),
      Stride(Eigen::Index(x.strides()[0]), Eigen::Index(x.strides()[1])));
}

}  // namespace cleave::inline v0::eigen
