// Tensors stored as floats of 8 bits, which represent the elements divided by a scale.
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/map.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class To>
struct Quantize {
  template <Element X, Element S>  // no dual numbers: it has no derivative
  CLEAVE_HOST_DEVICE To operator()(const X& x, const S& scale) const {
    return To(float(x) / float(scale));
  }
};

template <class To>
struct Dequantize {
  template <Element Q, Element S>
  CLEAVE_HOST_DEVICE To operator()(const Q& q, const S& scale) const {
    return To(float(q) * float(scale));
  }
};

template <class To>
struct ScaleOf {
  CLEAVE_HOST_DEVICE float operator()(const Element auto& largest) const {
    return float(largest) == 0 ? 1.f : float(largest) / To::largest;
  }
};

}  // namespace detail

/// q[i] = x[i] / scale, computed in float and rounded to a float of 8 bits: to nearest, ties to
/// even; what is beyond the largest number of the type becomes that number.
///
///     auto scale = quantization_scale<float8_e4m3>(w);
///     auto q = quantize<float8_e4m3>(w, scale);   // a byte per element
///     auto v = dequantize<float>(q, scale);
///
/// Floats of 8 bits can be distributed, redistributed, sliced, saved and loaded; other operations
/// require that they are converted before. Quantized tensors are constant in gradients.
///
/// @param x      real
/// @param scale  a number, or a tensor that broadcasts along x: [] for one scale, [n] for one per
///               column of [.., n]
/// @collective   every rank of the mesh, if x is Partial
/// @throws Error if the extents do not broadcast
/// @cost         one pass
template <class To, class... R, AnyTensor X, AnyOperand S>
constexpr auto quantize(const X& x, const S& scale) {
  static_assert(is_float8<To>, "cleave: quantize makes float8_e4m3 or float8_e5m2");
  static_assert(
      !is_complex<typename X::value_type> && !is_complex<typename detail::ElementOr<S>::type>,
      "cleave: quantize takes real numbers and a real scale");
  return map<R...>(detail::Quantize<To>{}, x, scale);
}
CLEAVE_USAGE(quantize, "quantize<float8_e4m3>(x, scale)")

/// x[i] = q[i] · scale, computed in float. @see quantize
template <Element To, class... R, AnyTensor Q, AnyOperand S>
constexpr auto dequantize(const Q& q, const S& scale) {
  static_assert(is_float8<typename Q::value_type> && !is_float8<To>,
                "cleave: dequantize takes floats of 8 bits, and makes wider elements");
  static_assert(!is_complex<To> && !is_complex<typename detail::ElementOr<S>::type>,
                "cleave: dequantize makes real numbers with a real scale");
  return map<R...>(detail::Dequantize<To>{}, q, scale);
}
CLEAVE_USAGE(dequantize, "dequantize<float>(q, scale)")

/// The scale with which the element of largest magnitude becomes the largest number of the type; 1
/// if all are 0. Infinities and NaNs make it infinite or NaN.
///
/// @return     [], replicated
/// @collective every rank of the mesh, if x is sharded or Partial
/// @throws Error if x has no elements
template <class To, AnyTensor X>
constexpr auto quantization_scale(const X& x) {
  static_assert(is_float8<To>, "cleave: quantization_scale is of float8_e4m3 or float8_e5m2");
  return map(detail::ScaleOf<To>{}, max(abs(x)));
}
CLEAVE_USAGE(quantization_scale, "quantization_scale<float8_e4m3>(x)")

}  // namespace cleave::inline v0
