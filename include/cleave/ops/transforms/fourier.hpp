// Discrete Fourier transforms of dimensions, sharded or not: fft, ifft, rfft, irfft.
//
// Each line is transformed whole on one rank, in the same way wherever it lies. A sharded dimension
// is exchanged for one that is not, and the result stays where that leaves it. Placements, which
// are types, determine the order of dimensions, so the bits of a result do not depend on the
// extents of the mesh.
//
//     // y[S1,R]  = fft(x[S0,R], dim<0, 1, 2>{})    dimensions 1 and 2, one exchange, dimension 0
//     // x[S0,R]  = ifft(y[S1,R], dim<0, 1, 2>{})   one exchange: a round trip needs no way back
//     // y[S1,S2] = fft(x[S0,S1], dim<0, 1, 2>{})   two exchanges
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/fourier_lines.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/transforms/whole_dims.hpp>

namespace cleave::inline v0 {

/// What results of transforms of N elements are divided by: N backward, N forward, sqrt(N) both
/// ways, or nothing. The names of NumPy, and of those who count themselves.
enum class Norm : std::uint8_t { backward, forward, ortho, none };

namespace detail {

/// The square root by Newton's method: std::sqrt is not constexpr.
constexpr double root_of(double n) {
  double root = n, next = (n + 1) / 2;
  while (next < root) root = next, next = (root + n / root) / 2;
  return root;
}

/// The factor of a transform of `count` elements. @param is_inverse whether the sign of i is
/// positive
constexpr double transform_scale(Norm norm, bool is_inverse, index_t count) {
  const double n = double(count > 0 ? count : 1);
  switch (norm) {
    case Norm::backward: return is_inverse ? 1 / n : 1;
    case Norm::forward: return is_inverse ? 1 : 1 / n;
    case Norm::ortho: return 1 / root_of(n);
    case Norm::none: break;
  }
  return 1;
}

}  // namespace detail

namespace ops {

/// The transform of dimension D, which is whole on every rank, times `scale`.
template <int D, bool Inverse>
struct FourierLines {
  double scale = 1;

  static constexpr const char* name = Inverse ? "ifft" : "fft";
  static constexpr RuleText replicated = detail::letter_of(D);
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr const char* partials = "sum->sum; avg->avg";
  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task&,
              const kernels::Strided<std::complex<T>>& y,
              const kernels::Strided<const std::complex<T>>& x) const {
    constexpr auto kind =
        Inverse ? kernels::LineTransformKind::inverse : kernels::LineTransformKind::forward;
    transform_lines(on, kind, x.extents[D], scale, 1, x, y, D);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(FourierLines<D, !Inverse>{scale}, g);
  }
};

template <int D>
struct HermitianLines;

/// The first n/2 + 1 elements of the transform of n real ones along dimension D, which is whole on
/// every rank, times `scale`; times `inner`, too, where a conjugate is left out.
template <int D>
struct RealLines {
  index_t length = 0;
  double scale = 1;
  double inner = 1;

  static constexpr const char* name = "rfft";
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return cleave::detail::joined(detail::letter_of(D), char('a' + dims[0]));
  }
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr const char* partials = "sum->sum; avg->avg";
  template <class T>
  using result_of = std::complex<T>;
  constexpr Shape extents() const { return Shape::filled(1, length / 2 + 1); }
  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task&,
              const kernels::Strided<std::complex<T>>& y,
              const kernels::Strided<const T>& x) const {
    transform_lines(on, kernels::LineTransformKind::real, length, scale, inner, x, y, D);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(HermitianLines<D>{length, scale, inner / 2}, g);
  }
};

/// The inverse of RealLines without a factor: n real elements of n/2 + 1 complex ones, times
/// `scale`; `inner` is a factor of those whose conjugates are left out.
template <int D>
struct HermitianLines {
  index_t length = 0;
  double scale = 1;
  double inner = 1;

  static constexpr const char* name = "irfft";
  static constexpr auto replicated = RealLines<D>::replicated;
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr const char* partials = "sum->sum; avg->avg";
  template <class T>
  using result_of = typename T::value_type;
  constexpr Shape extents() const { return Shape::filled(1, length); }
  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task&, const kernels::Strided<T>& y,
              const kernels::Strided<const std::complex<T>>& x) const {
    transform_lines(on, kernels::LineTransformKind::hermitian, length, scale, inner, x, y, D);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(RealLines<D>{length, scale, 2 * inner}, g);
  }
};

/// The transforms of the dimensions of a mask, the last one of them times `scale`.
template <unsigned Mask, bool Inverse>
struct FourierDims {
  double scale = 1;

  template <int D>
  constexpr FourierLines<D, Inverse> lines() const {
    return {D == detail::last_dim(Mask) ? scale : 1};
  }
};

/// The transform of the dimensions of a mask, times `scale`.
template <unsigned Mask, bool Inverse>
struct Fourier : CompositeByPlacement {
  double scale = 1;

  static constexpr const char* name = Inverse ? "ifft" : "fft";
  constexpr auto body(const auto& x) const {
    return detail::each_when_whole<Mask, Mask>(resolve(x), FourierDims<Mask, Inverse>{scale});
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), Fourier<Mask, !Inverse>{{}, scale}, g);
  }
};

template <unsigned Mask, int Last>
struct HermitianFourier;

/// The transform of a real array: of dimension Last, of which the first n/2 + 1 elements are kept,
/// then of the mask.
template <unsigned Mask, int Last>
struct RealFourier : CompositeByPlacement {
  double scale = 1;
  double inner = 1;

  static constexpr const char* name = "rfft";
  constexpr auto body(const auto& x) const {
    constexpr unsigned all = Mask | 1u << Last;
    auto lines = detail::when_whole<Last, all>(resolve(x), [this](const auto& part) {
      return call_op(RealLines<Last>{shape_of(part)[Last], scale, inner}, part);
    });
    return detail::each_when_whole<Mask, all, true>(std::move(lines), FourierDims<Mask, false>{});
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(
        detail::like(x), HermitianFourier<Mask, Last>{{}, shape_of(x)[Last], scale, inner / 2}, g);
  }
};

/// The inverse transform of the mask, then of dimension Last to `length` real elements.
template <unsigned Mask, int Last>
struct HermitianFourier : CompositeByPlacement {
  index_t length = -1;  ///< negative: twice the extent less one
  double scale = 1;
  double inner = 1;

  static constexpr const char* name = "irfft";
  constexpr auto body(const auto& x) const {
    constexpr unsigned all = Mask | 1u << Last;
    auto lines = detail::each_when_whole<Mask, all>(resolve(x), FourierDims<Mask, true>{});
    const index_t n = length < 0 ? 2 * (shape_of(lines)[Last] - 1) : length;
    return detail::when_whole<Last, all>(std::move(lines), [this, n](const auto& part) {
      return call_op(HermitianLines<Last>{n, scale, inner}, part);
    });
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), RealFourier<Mask, Last>{{}, scale, 2 * inner}, g);
  }
};

}  // namespace ops

namespace detail {

/// The dimension that `dim` names last.
template <int Rank, int... D>
constexpr int last_named(dim<D...>) {
  constexpr int named[] = {D...};
  constexpr int last = named[sizeof...(D) - 1];
  return last < 0 ? last + Rank : last;
}

/// The number of elements of the dimensions of a mask.
constexpr index_t count_in(const Shape& shape, unsigned mask) {
  index_t count = 1;
  for (int d = 0; d < shape.dims; ++d)
    if (mask >> d & 1u) count *= shape[d];
  return count;
}

template <class X>
constexpr void require_transformable() {
  using T = typename X::value_type;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>,
                "cleave: Fourier transforms take float, double and complex numbers of both; call "
                "cast<double>(x)");
#if !CLEAVE_HAS_CUFFT
  static_assert(std::is_same_v<typename X::device_type, Host>,
                "cleave: Fourier transforms on GPUs require cuFFT (CLEAVE_HAS_CUFFT=1)");
#endif
}

template <bool Inverse, class... R, class X, class D>
constexpr auto fourier(const X& x, D, Norm norm) {
  require_transformable<X>();
  using T = typename X::value_type;
  constexpr unsigned mask = checked_mask<X, D>();
  const double scale = transform_scale(norm, Inverse, count_in(shape_of(x), mask));
  const ops::Fourier<mask, Inverse> transform{{}, scale};
  if constexpr (is_complex<T>) return call_op<R...>(transform, x);
  else return call_op<R...>(transform, cast<std::complex<T>>(x));
}

}  // namespace detail

/// The discrete Fourier transform over the dimensions of a `dim`, in any order: the sum over j of
/// x[j] · exp(-2πi jk / n), with the names and factors of NumPy's fftn.
///
/// @param x     float, double, or complex numbers of both
/// @param over  `dim<0, 1>{}`; all dimensions by default
/// @return      complex, of the same extents; where a sharded dimension is transformed, another one
/// is
///              sharded instead. Ask for others: `fft<Placements<..>>(x, dim<0, 1>{})`
/// @collective  every rank of the mesh, if a dimension of `over` is sharded
/// @cost        an exchange of x per sharded dimension of `over`: slabs take one, pencils two. If
/// no
///              dimension is left to be sharded instead, x is brought together on every rank
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto fft(const X& x, D over = {}, Norm norm = Norm::backward) {
  return detail::fourier<false, R...>(x, over, norm);
}
CLEAVE_USAGE(fft, "fft(x), fft(x, dim<0, 1>{}), fft(x, dim<0, 1>{}, Norm::ortho)")

/// The inverse of fft: with the other sign of i, divided by the number of elements. Otherwise as
/// fft.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto ifft(const X& x, D over = {}, Norm norm = Norm::backward) {
  return detail::fourier<true, R...>(x, over, norm);
}
CLEAVE_USAGE(ifft, "ifft(x), ifft(x, dim<0, 1>{}), ifft(x, dim<0, 1>{}, Norm::ortho)")

/// fft of real numbers: of the dimension that `over` names last, with n elements, the first n/2 + 1
/// are kept; the others are conjugates of these. Otherwise as fft.
template <class... R, AnyTensor X, class D>
constexpr auto rfft(const X& x, D over, Norm norm = Norm::backward) {
  detail::require_transformable<X>();
  static_assert(!is_complex<typename X::value_type>,
                "cleave: rfft takes real numbers; call fft, or real(x) first");
  constexpr unsigned mask = detail::checked_mask<X, D>();
  constexpr int last = detail::last_named<X::dims>(D{});
  const Shape shape = shape_of(x);
  if (shape[last] == 0 && detail::knows_extents(x))
    throw Error("rfft", "the dimension has no elements", detail::context_of(x));
  const double scale = detail::transform_scale(norm, false, detail::count_in(shape, mask));
  static_cast<void>(over);
  return call_op<R...>(ops::RealFourier<(mask & ~(1u << last)), last>{{}, scale}, x);
}
CLEAVE_USAGE(rfft, "rfft(x, dim<0, 1>{}), rfft(x, dim<0, 1>{}, Norm::ortho)")

/// The inverse of rfft.
///
/// @param x       complex; of the dimension that `over` names last, n/2 + 1 elements. The imaginary
///                parts of the first one and, if n is even, the last one do not count
/// @param length  n, if it is odd; by default even
/// @return        real, with n elements along that dimension
/// @throws Error  if the extent is not n/2 + 1
template <class... R, AnyTensor X, class D>
constexpr auto irfft(const X& x, D over, index_t length = -1, Norm norm = Norm::backward) {
  detail::require_transformable<X>();
  static_assert(is_complex<typename X::value_type>, "cleave: irfft takes complex numbers");
  constexpr unsigned mask = detail::checked_mask<X, D>();
  constexpr int last = detail::last_named<X::dims>(D{});
  Shape shape = shape_of(x);
  const index_t n = length < 0 ? 2 * (shape[last] - 1) : length;
  if ((n < 1 || n / 2 + 1 != shape[last]) && detail::knows_extents(x))
    throw Error("irfft",
                std::to_string(n) + " real elements have " + std::to_string(n / 2 + 1) +
                    " complex ones, not " + std::to_string(shape[last]),
                detail::context_of(x));
  shape[last] = n;
  const double scale = detail::transform_scale(norm, true, detail::count_in(shape, mask));
  static_cast<void>(over);
  return call_op<R...>(ops::HermitianFourier<(mask & ~(1u << last)), last>{{}, n, scale}, x);
}
CLEAVE_USAGE(irfft, "irfft(x, dim<0, 1>{}), irfft(x, dim<0, 1>{}, length, Norm::ortho)")

}  // namespace cleave::inline v0
