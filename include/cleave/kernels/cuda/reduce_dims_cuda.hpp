// Sums, products, maxima and minima over some dimensions of an array on a GPU.
//
// The order of operations depends on extents, strides and the device alone: the same bits in every
// run. Each thread sums few elements, and threads combine in trees, so that rounding errors stay
// small; 16-bit floats are accumulated in float.
#pragma once

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/reduce_nests.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Reduces elements by Op, accumulated in A.
template <class Op, class A>
struct ElementReduction {
  using Total = A;
  using Fold = kernels::Fold<Op>;

  CLEAVE_HOST_DEVICE static A identity() { return Fold::template identity<A>(); }
  template <class T>
  CLEAVE_HOST_DEVICE static A lift(const T& element, index_t) {
    return A(element);
  }
  CLEAVE_HOST_DEVICE static A combine(const A& a, const A& b) { return Fold::combine(a, b); }
};

/// Stores results after applying an epilogue.
template <class R, class Epilogue>
struct ElementResult {
  R* out;
  Epilogue epilogue;

  template <class A>
  __device__ void put(index_t at, const A& sum) const {
    out[at] = R(epilogue(sum));
  }
};

}  // namespace cuda::detail

namespace kernels {

/// Reduces the dimensions of the mask, in the order of the current stream.
///
/// @tparam Op  Sum, Product, Max or Min
/// @param in   any extents and strides
/// @param mask bit d: dimension d is reduced
/// @param out  the remaining dimensions in order, row-major and contiguous; identity elements if
///             there is nothing to reduce
/// @param epilogue  applied to each result before it is rounded to R
/// @cost  one launch; two, and memory for partial results, if few results have many elements
/// @throws Error if a launch fails, or there is no memory for partial results
template <class Op, class T, class R, class Epilogue = Same>
void reduce_dims(On<Cuda>, const Strided<const T>& in, unsigned mask, const Strided<R>& out,
                 const Epilogue& epilogue = {}) {
  using A = accumulator_t<R>;
  if (out.extents.product() == 0) return;
  if (in.extents.product() == 0) {
    const R identity = R(epilogue(Fold<Op>::template identity<A>()));
    return strided_fill(Cuda{}, View{out.data, dtype_of<R>(), out.extents, out.strides}, identity);
  }
  const cuda::detail::ReduceShapes shapes(in.extents, in.strides, mask);
  cuda::detail::reduce_nests<cuda::detail::ElementReduction<Op, A>>(
      "reduce_dims", in.data, shapes.kept_loops(), shapes.reduced_loops(),
      cuda::detail::ElementResult<R, Epilogue>{out.data, epilogue});
}

}  // namespace kernels

}  // namespace cleave::inline v0
