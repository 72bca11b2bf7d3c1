// Cosine and sine transforms of types 1 to 4 of dimensions, sharded or not: dct, idct, dst, idst.
//
// Definitions and norms are those of SciPy; kernels::Waves has the sums. What is exchanged, and
// that bits do not depend on the mesh, is as for fft: @see fourier.hpp
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/fourier_lines.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/ops/transforms/whole_dims.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The sums of a transform and their factors.
struct WaveSums {
  std::int64_t type = 2;
  double power = 0;                ///< sums are multiplied by the period to this power
  double end_in = 1, end_out = 1;  ///< factors of the ends, kernels::EndFactors

  /// The transposed matrix: without its weights at the ends, type 2 is that of type 3, and the
  /// other types are their own. They weigh operands by 1/2, which is taken out here and put in
  /// there.
  constexpr WaveSums transposed() const {
    return {type == 2 ? 3 : type == 3 ? 2 : type, power, 2 * end_out, end_in / 2};
  }
};

/// The transform of dimension D, which is whole on every rank.
template <int D, bool IsSine>
struct WaveLines {
  WaveSums sums{};

  static constexpr const char* name = IsSine ? "dst" : "dct";
  static constexpr RuleText replicated = detail::letter_of(D);
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr const char* partials = "sum->sum; avg->avg";
  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task&, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    using kernels::LineTransformKind;
    constexpr auto first = IsSine ? LineTransformKind::sine1 : LineTransformKind::cosine1;
    const auto kind = LineTransformKind(int(first) + int(sums.type) - 1);
    const index_t n = x.extents[D];
    if (n == 1 && kind == LineTransformKind::cosine1)
      throw Error(name, "type 1 requires two or more elements");
    const auto period = double(kernels::Waves(kind).period(n));
    const double scale = sums.power == 0    ? 1
                         : sums.power == -1 ? 1 / period
                                            : 1 / std::sqrt(period);
    transform_lines(on, kind, n, scale, 1, x, y, D, {sums.end_in, sums.end_out});
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(WaveLines{sums.transposed()}, g);
  }
};

template <bool IsSine>
struct WaveDims {
  WaveSums sums{};

  template <int D>
  constexpr WaveLines<D, IsSine> lines() const {
    return {sums};
  }
};

/// The transform of the dimensions of a mask.
template <unsigned Mask, bool IsSine>
struct WaveTransform : CompositeByPlacement {
  WaveSums sums{};

  static constexpr const char* name = IsSine ? "dst" : "dct";
  constexpr auto body(const auto& x) const {
    return detail::each_when_whole<Mask, Mask>(resolve(x), WaveDims<IsSine>{sums});
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), WaveTransform{{}, sums.transposed()}, g);
  }
};

}  // namespace ops

namespace detail {

/// The sums of a transform or, if it is an inverse one, of the type that inverts it.
constexpr ops::WaveSums wave_sums(int type, bool is_sine, bool is_inverse, Norm norm) {
  ops::WaveSums sums{type, 0, 1, 1};
  if (is_inverse && (type == 2 || type == 3)) sums.type = 5 - type;
  if (norm == (is_inverse ? Norm::backward : Norm::forward)) sums.power = -1;
  if (norm == Norm::ortho) {
    constexpr double root = 1.41421356237309504880;
    sums.power = -0.5;
    if (sums.type == 3 || (sums.type == 1 && !is_sine)) sums.end_in = root;
    if (sums.type == 2 || (sums.type == 1 && !is_sine)) sums.end_out = 1 / root;
  }
  return sums;
}

template <bool IsSine, bool IsInverse, class... R, class X, class D>
constexpr auto wave_transform(const X& x, D, int type, Norm norm) {
  using T = typename X::value_type;
  static_assert(
      std::is_same_v<T, float> || std::is_same_v<T, double>,
      "cleave: cosine and sine transforms take float and double; call cast<double>(x), or "
      "transform real(x) and imag(x)");
  static_assert(std::is_same_v<typename X::device_type, Host>,
                "cleave: cosine and sine transforms are computed on the host; move x there");
  constexpr unsigned mask = checked_mask<X, D>();
  constexpr const char* name = IsSine ? IsInverse ? "idst" : "dst" : IsInverse ? "idct" : "dct";
  if (type < 1 || type > 4)
    throw Error(name, "the type is " + std::to_string(type) + "; it must be 1, 2, 3 or 4",
                context_of(x));
  const Shape shape = shape_of(x);
  for (int d = 0; d < shape.dims; ++d)
    if (!IsSine && type == 1 && mask >> d & 1u && shape[d] == 1 && knows_extents(x))
      throw Error(name, "type 1 requires two or more elements", context_of(x));
  return call_op<R...>(
      ops::WaveTransform<mask, IsSine>{{}, wave_sums(type, IsSine, IsInverse, norm)}, x);
}

}  // namespace detail

/// The cosine transform of the dimensions that a `dim` names, all by default, one after the other.
///
/// @param x     float or double, on the host
/// @param type  1 to 4, the sums of SciPy and FFTW: of type 2, with n elements,
///              y[k] = 2 Σ_j x[j] cos(π k (2 j + 1) / 2n)
/// @param norm  backward: results of idct are divided by 2n, of type 1 by 2 (n - 1); forward: those
///              of dct; ortho: both by the root, and elements at the ends are weighed so that the
///              transform is an orthogonal matrix, as SciPy does; none: neither
/// @return      the extents of x, with the placements that fft leaves
/// @collective  every rank of the mesh, if a transformed dimension is sharded
/// @cost        as fft; without FFTW, as an fft of complex numbers and twice the extents
/// @throws Error if the type is not 1 to 4, or a dimension of a dct of type 1 has one element
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto dct(const X& x, D over = {}, int type = 2, Norm norm = Norm::backward) {
  return detail::wave_transform<false, false, R...>(x, over, type, norm);
}
CLEAVE_USAGE(dct, "dct(x), dct(x, dim<0, 1>{}), dct(x, dim<0, 1>{}, 2, Norm::ortho)")

/// The inverse of dct of the same type and norm. Otherwise as dct.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto idct(const X& x, D over = {}, int type = 2, Norm norm = Norm::backward) {
  return detail::wave_transform<false, true, R...>(x, over, type, norm);
}
CLEAVE_USAGE(idct, "idct(x), idct(x, dim<0, 1>{}), idct(x, dim<0, 1>{}, 2, Norm::ortho)")

/// The sine transform: of type 2, y[k] = 2 Σ_j x[j] sin(π (k + 1) (2 j + 1) / 2n). Type 1 has the
/// period 2 (n + 1). Otherwise as dct.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto dst(const X& x, D over = {}, int type = 2, Norm norm = Norm::backward) {
  return detail::wave_transform<true, false, R...>(x, over, type, norm);
}
CLEAVE_USAGE(dst, "dst(x), dst(x, dim<0, 1>{}), dst(x, dim<0, 1>{}, 2, Norm::ortho)")

/// The inverse of dst of the same type and norm. Otherwise as dct.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto idst(const X& x, D over = {}, int type = 2, Norm norm = Norm::backward) {
  return detail::wave_transform<true, true, R...>(x, over, type, norm);
}
CLEAVE_USAGE(idst, "idst(x), idst(x, dim<0, 1>{}), idst(x, dim<0, 1>{}, 2, Norm::ortho)")

}  // namespace cleave::inline v0
