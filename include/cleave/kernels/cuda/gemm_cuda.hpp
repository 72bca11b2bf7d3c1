// C = A · B or C += A · B on a GPU: with cuBLASLt for the element types that it supports, by
// tiled_gemm.hpp for integers.
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/tf32.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/tensor/cuda/device.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

template <class T>
void gemm_matrices(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const kernels::Batches& batches, bool add);

template <class T>
bool gemm_and_bias(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const T* bias);

/// The same for any type of equal kind and size: `long` and `long long` are the same integers.
template <class T>
void gemm_elements(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const kernels::Batches& batches, bool add) {
  static_assert(!std::is_same_v<T, bool>, "cleave: a matrix product requires numbers, not bool");
  if constexpr (std::is_same_v<T, element_t<dtype_of<T>()>>) {
    gemm_matrices(a, b, c, batches, add);
  } else {
    using U = element_t<dtype_of<T>()>;
    const auto as = [](const auto& m, auto* data) {
      return kernels::Matrix<std::remove_pointer_t<decltype(data)>>{data, m.rows, m.cols,
                                                                    m.row_stride, m.col_stride};
    };
    gemm_matrices<U>(as(a, reinterpret_cast<const U*>(a.data)),
                     as(b, reinterpret_cast<const U*>(b.data)), as(c, reinterpret_cast<U*>(c.data)),
                     batches, add);
  }
}

}  // namespace cuda::detail

namespace kernels {

/// Writes A · B to C, or adds it, in the order of the current stream.
///
/// Sums of 16-bit floats are accumulated in float and rounded once; integers wrap; floats are
/// multiplied in full precision unless `cuda::allow_tf32`.
///
/// @param a  [m, k], any strides; read in place where one of them is 1, else packed
/// @param b  [k, n], likewise
/// @param c    [m, n] with contiguous rows; must not overlap a or b
/// @param add  whether the product is added to what C has
/// @throws Error  if cuBLASLt cannot compute it, or there is no memory for its workspace
template <class T>
void gemm(On<Cuda>, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
          bool add = false) {
  cuda::detail::gemm_elements(a, b, c, Batches{}, add);
}

/// A batch of products of matrices of equal extents and strides, in one launch per 65535 products.
template <class T>
void gemm_batched(On<Cuda>, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c,
                  const Batches& batches, bool add = false) {
  cuda::detail::gemm_elements(a, b, c, batches, add);
}

/// Writes A · B + bias to C in one launch, if cuBLASLt can: of floats that it reads and writes in
/// place. 16-bit floats are rounded once.
///
/// @param bias  [n], contiguous; added to every row
/// @return whether C was written
template <class T>
bool gemm_with_bias(On<Cuda>, const Matrix<const T>& a, const Matrix<const T>& b,
                    const Matrix<T>& c, const T* bias) {
  if constexpr (std::is_same_v<accumulator_t<T>, float>)
    return cuda::detail::gemm_and_bias(a, b, c, bias);
  else return false;
}

}  // namespace kernels

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/kernels/cuda/gemm_cuda_body.hpp>
#endif
