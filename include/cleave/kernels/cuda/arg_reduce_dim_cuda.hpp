// The indices and values of the extreme elements along a dimension (argmax, argmin), on a GPU.
//
// A reduction of (element, index) pairs in which the lowest index wins among equal elements: the
// result does not depend on the order in which threads combine.
#pragma once

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/reduce_nests.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/first_extreme.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

template <class T>
struct Candidate {
  T value;
  index_t index;
};

/// Selects the better candidate under Op, Max or Min.
template <class Op, class T>
struct CandidateReduction {
  using Total = Candidate<T>;

  CLEAVE_HOST_DEVICE static Total identity() {
    return {kernels::Fold<Op>::template identity<T>(), kernels::no_index};
  }
  CLEAVE_HOST_DEVICE static Total lift(const T& value, index_t index) { return {value, index}; }
  CLEAVE_HOST_DEVICE static Total lift(const Total& candidate, index_t) { return candidate; }

  CLEAVE_HOST_DEVICE static Total combine(const Total& a, const Total& b) {
    if (kernels::is_better<Op>(a.value, b.value)) return a;
    if (kernels::is_better<Op>(b.value, a.value)) return b;
    return a.index < b.index ? a : b;
  }
};

/// Stores results in two arrays, the first of which may be null.
template <class T>
struct CandidateResult {
  T* values;
  index_t* indices;
  index_t first;

  __device__ void put(index_t at, const Candidate<T>& best) const {
    indices[at] = first + best.index;
    if (values != nullptr) values[at] = best.value;
  }
};

}  // namespace cuda::detail

namespace kernels {

/// Finds the extreme element of dimension `dim` for every index of the other dimensions, in the
/// order of the current stream.
///
/// @tparam Op      Max or Min
/// @param first    the index of the dimension's first element
/// @param values   the remaining dimensions in order, row-major and contiguous, or null; identity
///                 elements if the dimension is empty
/// @param indices  likewise, not null; `no_index` if the dimension is empty
/// @cost  as reduce_dims
/// @throws Error if a launch fails, or there is no memory for partial results
template <class Op, class T>
void arg_reduce_dim(On<Cuda>, const Strided<const T>& in, int dim, index_t first, T* values,
                    index_t* indices) {
  const cuda::detail::ReduceShapes shapes(in.extents, in.strides, 1u << dim);
  if (shapes.kept.product() == 0) return;
  if (in.extents[dim] == 0) {
    strided_fill(Cuda{}, View::dense(indices, DType::int64, shapes.kept), no_index);
    if (values != nullptr)
      strided_fill(Cuda{}, View::dense(values, dtype_of<T>(), shapes.kept),
                   Fold<Op>::template identity<T>());
    return;
  }
  cuda::detail::reduce_nests<cuda::detail::CandidateReduction<Op, T>>(
      "arg_reduce_dim", in.data, shapes.kept_loops(), shapes.reduced_loops(),
      cuda::detail::CandidateResult<T>{values, indices, first});
}

}  // namespace kernels

}  // namespace cleave::inline v0
