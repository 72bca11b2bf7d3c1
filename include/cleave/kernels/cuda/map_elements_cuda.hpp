// One pass over any number of arrays on a GPU: out[i] = f(a[i], b[i], ..).
//
// Threads follow the innermost dimension of the result. A large input that is contiguous along
// another dimension is transposed first: read in place, its accesses would not be coalesced.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/map_nest.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// From this number of elements on, uncoalesced reads cost more than another launch.
inline constexpr index_t min_transposed = index_t{1} << 18;

/// The dimension with the smallest nonzero stride and an extent above 1; -1 if there is none.
inline int innermost_dim(const Shape& extents, const Shape& strides) {
  int inner = -1;
  for (int d = 0; d < extents.dims; ++d)
    if (extents[d] > 1 && strides[d] != 0 &&
        (inner < 0 || magnitude(strides[d]) < magnitude(strides[inner])))
      inner = d;
  return inner;
}

/// Contiguous strides for the elements of an array, in the order of dimensions given by the strides
/// `order`; strides of 0 are kept.
inline Shape strides_like(const Shape& extents, const Shape& strides, const Shape& order) {
  Shape result = Shape::filled(extents.dims, 0);
  const Shape inner_last = cleave::detail::descending_order(extents.dims, std::array{&order});
  index_t step = 1;
  for (int i = extents.dims - 1; i >= 0; --i) {
    const int d = int(inner_last[i]);
    if (strides[d] == 0) continue;
    result[d] = step;
    step *= extents[d];
  }
  return result;
}

/// An input of a map over `extents`, or a copy that is contiguous along the same dimension as the
/// result. @param kept  takes ownership of the copy
template <class T>
kernels::Strided<const T> transposed(const kernels::Strided<const T>& in, const Shape& extents,
                                     const Shape& out_strides,
                                     std::vector<std::shared_ptr<void>>& kept) {
  const int along = innermost_dim(extents, out_strides);
  const int crossed = innermost_dim(extents, in.strides);
  if (along < 0 || crossed < 0 || along == crossed || in.strides[along] == 0 ||
      extents[along] < least_tile_side || extents[crossed] < least_tile_side)
    return in;
  Shape stored = extents;  // repeated elements are copied once
  for (int d = 0; d < extents.dims; ++d)
    if (in.strides[d] == 0) stored[d] = 1;
  if (stored.product() < min_transposed) return in;
  const Shape strides = strides_like(extents, in.strides, out_strides);
  kept.push_back(allocate_bytes(Cuda{}, std::size_t(stored.product()) * sizeof(T)));
  auto* copy = static_cast<T*>(kept.back().get());
  strided_copy(Cuda{}, ConstView{in.data, dtype_of<T>(), stored, in.strides},
               View{copy, dtype_of<T>(), stored, strides});
  return {copy, extents, strides};
}
template <class T>
const kernels::Scalar<T>& transposed(const kernels::Scalar<T>& in, const Shape&, const Shape&,
                                     std::vector<std::shared_ptr<void>>&) {
  return in;
}

template <class T>
Elements<T> input_of(const kernels::Strided<const T>& in) {
  return {in.data};
}
template <class T>
Value<T> input_of(const kernels::Scalar<T>& in) {
  return {in.value};
}

template <class F, class R, class... In>
void map_arrays(const F& f, const kernels::Strided<R>& out, const In&... in) {
  const LoopNest<1 + int(sizeof...(In))> nest(out.extents, {&out.strides, &strides_of(in)...});
  map_nest("map_elements", f, nest, out.data, input_of(in)...);
}

}  // namespace cuda::detail

namespace kernels {

/// Writes f of the inputs' elements to every element of `out`, in the order of the current stream.
///
/// @param f    callable in device code: a functor, or a lambda marked __device__
/// @param out  must not overlap an input
/// @param in   arrays in device memory with strides for the extents of `out`, 0 along dimensions
///             that repeat; or a `Scalar`
/// @cost  one launch per 2^31 elements; bytes move once, those of large transposed inputs twice
/// @throws Error if the launch fails, or there is no memory for transposed inputs
template <class F, class R, class... In>
void map_elements(On<Cuda>, const F& f, const Strided<R>& out, const In&... in) {
  if (out.extents.product() == 0) return;
  std::vector<std::shared_ptr<void>> kept;  // until the kernel is enqueued
  cuda::detail::map_arrays(f, out, cuda::detail::transposed(in, out.extents, out.strides, kept)...);
}

}  // namespace kernels

}  // namespace cleave::inline v0
