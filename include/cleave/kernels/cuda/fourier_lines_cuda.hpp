// Discrete Fourier transforms along one dimension of an array on a GPU, by cuFFT.
//
// cuFFT reads and writes lines whose first elements are equally spaced. Arrays that have more than
// one loop over lines, or that cuFFT must not touch, are copied: packed, transformed, unpacked.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/kernels/cuda/cufft_plan.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/map_indexed_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The weight of an element of a line: `scale`, and `inner` for elements whose conjugates are left
/// out.
template <class T>
struct LineWeights {
  index_t below = 1;   ///< elements between neighbours of a line in a row-major array
  index_t extent = 1;  ///< of the dimension
  index_t n = 1;       ///< the length of the transform
  T scale = 1, inner = 1;
  bool is_hermitian = false;  ///< whether imaginary parts without a conjugate are set to 0

  template <class E>
  CLEAVE_HOST_DEVICE E operator()(index_t index, const E& value) const {
    const index_t k = index / below % extent;
    const bool has_conjugate = 0 < k && k != n - k;
    const T weight = has_conjugate && k < n - k ? scale * inner : scale;
    return E(weight * value.real(),
             is_hermitian && !has_conjugate ? T(0) : T(weight * value.imag()));
  }
};

/// Space for an array, contiguous along dimension d.
template <class T>
struct FftBuffer {
  std::shared_ptr<void> memory{};
  kernels::Strided<T> array{};

  FftBuffer(const Shape& extents, int d) {
    Shape order = extents;
    order[d] = 1;
    Shape strides = cleave::row_major_strides(order);
    for (int e = 0; e < extents.dims; ++e) strides[e] *= extents[d];
    strides[d] = 1;
    memory = allocate_bytes(Cuda{}, std::size_t(extents.product()) * sizeof(T));
    array = {static_cast<T*>(memory.get()), extents, strides};
  }
};

template <class T>
void copy_array(const kernels::Strided<const T>& from, const kernels::Strided<T>& to) {
  strided_copy(Cuda{}, ConstView{from.data, dtype_of<T>(), from.extents, from.strides},
               View{to.data, dtype_of<T>(), to.extents, to.strides});
}

template <class T>
kernels::Strided<const T> constant(const kernels::Strided<T>& array) {
  return {array.data, array.extents, array.strides};
}

/// Whether cuFFT can transform lines of x to lines of y in place: fills in lines and spacings.
/// @param alignment  of complex elements
inline bool describe(const void* x, const Shape& x_strides, const void* y, const Shape& y_strides,
                     Shape extents, int d, std::size_t alignment, FftBatch& batch) {
  extents[d] = 1;
  const LoopNest<2> nest(extents, {&y_strides, &x_strides});
  const auto is_aligned = [alignment](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
  };
  const index_t line_in = nest.strides[1][0], line_out = nest.strides[0][0];
  if (nest.dims > 1 || !is_aligned(x) || !is_aligned(y)) return false;
  if (x_strides[d] < 1 || y_strides[d] < 1 || line_in < 1 || line_out < 1) return false;
  batch.lines = nest.extents[0];
  batch.in = {x_strides[d], line_in};
  batch.out = {y_strides[d], line_out};
  return true;
}

/// The type of a transform of lines of In to lines of Out.
template <class In, class Out>
constexpr cufftType fft_type() {
  constexpr bool is_double = sizeof(typename kernels::RealPart<In>::type) == sizeof(double);
  if constexpr (!is_complex<In>) return is_double ? CUFFT_D2Z : CUFFT_R2C;
  else if constexpr (!is_complex<Out>) return is_double ? CUFFT_Z2D : CUFFT_C2R;
  else return is_double ? CUFFT_Z2Z : CUFFT_C2C;
}

}  // namespace cuda::detail

namespace kernels {

/// @see transform_lines for the host; in the order of the current stream.
/// @cost   as much memory as x, y or both, if they have to be packed
/// @throws Error if cuFFT fails, or there is no memory
template <class In, class Out>
void transform_lines(On<Cuda> on, LineTransformKind kind, index_t n, double scale, double inner,
                     const Strided<const In>& x, const Strided<Out>& y, int d) {
  using namespace cuda::detail;
  using T = typename RealPart<In>::type;
  constexpr std::size_t alignment = sizeof(std::complex<T>);
  if (x.extents.product() == 0 || y.extents.product() == 0) return;
  const auto weigh = [&]<class E>(const Strided<E>& array) {
    const bool is_hermitian = kind == LineTransformKind::hermitian;
    if (scale == 1 && inner == 1 && !is_hermitian) return;
    const LineWeights<T> weights{
        row_major_strides(array.extents)[d], array.extents[d], n, T(scale), T(inner), is_hermitian};
    map_indexed(on, weights, Box::of(array.extents), array.extents, array, constant(array));
  };

  FftBatch batch{fft_type<In, Out>(), n, 1, {}, {}};
  Strided<const In> from = x;
  Strided<Out> to = y;
  const auto fits = [&] {
    return describe(from.data, from.strides, to.data, to.strides, y.extents, d, alignment, batch);
  };
  std::unique_ptr<FftBuffer<In>> packed;
  std::unique_ptr<FftBuffer<Out>> unpacked;
  const auto pack = [&] {
    packed = std::make_unique<FftBuffer<In>>(x.extents, d);
    from = constant(packed->array);
  };
  // complex lines become real ones in a copy: they are weighed, and cuFFT may overwrite them
  if constexpr (!is_complex<Out>) pack();
  else if (!fits()) pack();
  if (!fits()) {
    unpacked = std::make_unique<FftBuffer<Out>>(y.extents, d);
    to = unpacked->array;
    fits();
  }
  if (packed != nullptr) copy_array(x, packed->array);
  if constexpr (!is_complex<Out>) weigh(packed->array);
  const bool is_inverse =
      kind == LineTransformKind::inverse || kind == LineTransformKind::hermitian;
  fft_plan(batch).run(const_cast<In*>(from.data), to.data,
                      is_inverse ? CUFFT_INVERSE : CUFFT_FORWARD);
  if constexpr (is_complex<Out>) weigh(to);
  if (unpacked != nullptr) copy_array(constant(to), y);
}

}  // namespace kernels

}  // namespace cleave::inline v0
