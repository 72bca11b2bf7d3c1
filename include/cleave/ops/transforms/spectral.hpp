// Functions of wave numbers: derivatives, filters and Poisson equations of periodic fields in a
// line; and the order of transforms, fftfreq and fftshift.
//
//     // -Δu = f on a periodic cube of side 2π
//     const auto u = spectral(f, [](const auto& k) { return k.norm2() == 0 ? 0 : 1 / k.norm2(); });
#pragma once

#include <complex>
#include <type_traits>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

/// The wave numbers of a mode: how often it oscillates along each dimension.
template <int Rank>
struct WaveNumbers {
  double values[Rank] = {};

  CLEAVE_HOST_DEVICE constexpr double operator[](int d) const { return values[d]; }
  /// The sum of their squares.
  CLEAVE_HOST_DEVICE constexpr double norm2() const {
    double sum = 0;
    for (const double k : values) sum += k * k;
    return sum;
  }
};

namespace detail {

/// The wave number of element i of a transform of n elements: 0, 1, .. -2, -1, as NumPy's fftfreq
/// times n.
CLEAVE_HOST_DEVICE constexpr index_t wave_number(index_t i, index_t n) {
  return i < n - i ? i : i - n;
}

}  // namespace detail

namespace ops {

/// Multiplies the element of each mode by f(k), or by its conjugate.
///
/// @tparam Half  the dimension of which only the modes 0, 1, .. n/2 are there; -1: none
template <class F, int Rank, int Half, bool Conjugate = false>
struct TimesOfWaves {
  F f;

  static constexpr bool is_stateless = cleave::detail::is_stateless<F>;
  static constexpr const char* name = "spectral";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr bool needs_box = true;
  template <class Device, class T>
  void kernel(const kernels::On<Device>& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    Shape shape = Shape::filled(Rank, 0);
    for (int d = 0; d < Rank; ++d) shape[d] = task.in->shape[d];
    if constexpr (std::is_same_v<Device, Host>) by_rows(*task.box, shape, y, x);
    else map_indexed(on, OfIndex<T>{*this, shape}, *task.box, shape, y, x);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(TimesOfWaves<F, Rank, Half, !Conjugate>{f}, g);
  }

  /// The product of an element, from its row-major global index.
  template <class T>
  struct OfIndex {
    TimesOfWaves op;
    Shape shape;

    CLEAVE_HOST_DEVICE T operator()(index_t index, const T& value) const {
      WaveNumbers<Rank> k;
      for (int d = Rank - 1; d >= 0; --d) {
        k.values[d] = wave(d, index % shape[d], shape);
        index /= shape[d];
      }
      return kernels::times(value, op.template factor<T>(k));
    }
  };

 private:
  CLEAVE_HOST_DEVICE static double wave(int d, index_t i, const Shape& shape) {
    return double(d == Half ? i : cleave::detail::wave_number(i, shape[d]));
  }

  template <class T>
  CLEAVE_HOST_DEVICE T factor(const WaveNumbers<Rank>& k) const {
    using R = typename T::value_type;
    const auto value = f(k);
    if constexpr (is_complex<std::remove_const_t<decltype(value)>>)
      return T(R(value.real()), Conjugate ? R(-value.imag()) : R(value.imag()));
    else return T(R(value), R(0));
  }

  template <class T>
  void by_rows(const Box& box, const Shape& shape, const kernels::Strided<T>& y,
               const kernels::Strided<const T>& x) const {
    if (y.extents.product() == 0) return;
    WaveNumbers<Rank> k;
    Shape at = Shape::filled(Rank, 0);
    for (int d = 0; d < Rank; ++d) k.values[d] = wave(d, box.begin[d], shape);
    index_t to = 0, from = 0;
    for (;;) {
      y.data[to] = kernels::times(x.data[from], factor<T>(k));
      int d = Rank - 1;
      for (; d >= 0; --d) {
        to += y.strides[d], from += x.strides[d];
        const bool ends = ++at[d] == y.extents[d];
        if (ends) to -= y.strides[d] * at[d], from -= x.strides[d] * at[d], at[d] = 0;
        k.values[d] = wave(d, box.begin[d] + at[d], shape);
        if (!ends) break;
      }
      if (d < 0) return;
    }
  }
};

}  // namespace ops

/// Multiplies the modes of a periodic array by a function of their wave numbers: the inverse
/// transform of f(k) times the transform of x.
///
///     const auto dx = spectral(u, [](const auto& k) { return std::complex(0.0, k[0]); });
///
/// @param x  real or complex. If x is real, only half of the modes are computed, and f(-k) must be
///           the conjugate of f(k). An even extent n has one mode with |k| = n/2: f is called with
///           n/2 for the last dimension of a real x, with -n/2 otherwise, and has to be real, or 0,
///           there
/// @param f  of a WaveNumbers<dims>, whole numbers: for a period L, multiply them by 2π/L; returns
/// a
///           real or complex number. Callable in device code if x is on a GPU
/// @return   as x, of the placements that transforms there and back leave
/// @collective every rank of the mesh, if a dimension is sharded
/// @cost     as fft and ifft
template <AnyTensor X, class F>
constexpr auto spectral(const X& x, const F& f) {
  constexpr int dims = X::dims;
  if constexpr (is_complex<typename X::value_type>) {
    return ifft(call_op(ops::TimesOfWaves<F, dims, -1>{f}, fft(x)));
  } else {
    return [&]<int... D>(std::integer_sequence<int, D...>) {
      constexpr dim<D...> all{};
      const auto modes = call_op(ops::TimesOfWaves<F, dims, dims - 1>{f}, rfft(x, all));
      return irfft(modes, all, shape_of(x)[dims - 1]);
    }(std::make_integer_sequence<int, dims>{});
  }
}

CLEAVE_USAGE(spectral, "spectral(x, f) with f(k) for wave numbers k")

/// The frequencies of fft's results along a dimension of n elements that are `spacing` apart: 0, 1,
/// .. -2, -1, divided by n · spacing, as NumPy's fftfreq. A Tensor.
template <Element T = double>
Tensor<T, 1> fftfreq(index_t n, double spacing = 1) {
  const Tensor<T, 1> frequencies({n});
  for (index_t i = 0; i < n; ++i)
    frequencies.data()[i] = T(double(detail::wave_number(i, n)) / (double(n) * spacing));
  return frequencies;
}

namespace detail {

template <unsigned Mask, class X>
constexpr auto shifted(const X& x, int sign) {
  if constexpr (Mask == 0) {
    return x;
  } else {
    constexpr int d = last_dim(Mask);
    const index_t n = shape_of(x)[d];
    return shifted < Mask & ~(1u << d) > (roll(x, dim<d>{}, sign > 0 ? n / 2 : n - n / 2), sign);
  }
}

}  // namespace detail

/// Moves frequency 0 to the middle of the dimensions of a `dim`, all by default. Communicates as
/// roll.
template <AnyTensor X, class D = every_dim>
constexpr auto fftshift(const X& x, D = {}) {
  return detail::shifted<detail::checked_mask<X, D>()>(x, 1);
}

/// The inverse of fftshift.
template <AnyTensor X, class D = every_dim>
constexpr auto ifftshift(const X& x, D = {}) {
  return detail::shifted<detail::checked_mask<X, D>()>(x, -1);
}

}  // namespace cleave::inline v0
