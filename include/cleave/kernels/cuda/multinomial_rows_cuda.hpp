// Categories drawn with given weights, for arrays in device memory.
#pragma once

#include <optional>
#include <string>

#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/host/multinomial_rows.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/transfer.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::kernels {

/// The same as on the host, where the draws are computed.
///
/// @cost copies the weights to the host, which waits for them, and the categories back
template <class T>
std::optional<std::string> multinomial_rows(On<Cuda>, const Strided<const T>& weights, index_t row,
                                            const RandomState& state, bool replacement,
                                            const Strided<index_t>& out) {
  const Tensor<T, 2, Cuda> dense(to_array<2>(weights.extents));
  strided_copy(Cuda{}, ConstView{weights.data, dtype_of<T>(), weights.extents, weights.strides},
               dense.view());
  const Tensor<T, 2> on_host = dense.to(Host{});
  const Tensor<index_t, 2> drawn(to_array<2>(out.extents));
  drawn.fill_(0);
  const auto wrong =
      multinomial_rows(On<Host>{}, read(on_host), row, state, replacement, write(drawn));
  strided_copy(Cuda{}, drawn.to(Cuda{}).view(),
               View{out.data, DType::int64, out.extents, out.strides});
  return wrong;
}

}  // namespace cleave::inline v0::kernels
