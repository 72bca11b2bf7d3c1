// Transforms of lines without a library. @see fftw_line_transform.hpp for the same with FFTW
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>
#include <cleave/kernels/host/mixed_radix_fft.hpp>

namespace cleave::inline v0::kernels {

/// A transform in place of lines of one length.
template <class T>
class PlainLineTransform {
 public:
  using Complex = std::complex<T>;

  PlainLineTransform(LineTransformKind kind, index_t n, bool = false)
      : kind_(kind),
        n_(n),
        fft_length_(is_cosine_or_sine(kind) ? kernels::Waves(kind).period(n) : n),
        fft_(fft_length_) {}

  /// The number of elements of scratch memory.
  index_t scratch() const { return fft_length_ + fft_.scratch(); }

  /// Whether complex lines along a dimension are best interleaved, and how far the elements of
  /// `lines` ones are apart then.
  static constexpr bool interleaves(bool) { return true; }
  static constexpr index_t stride(index_t, index_t lines) { return lines; }

  /// Transforms interleaved lines of complex numbers in place. Thread-safe.
  void interleaved(Complex* x, index_t lines, Complex* scratch) const {
    const bool is_inverse = kind_ == LineTransformKind::inverse;
    if (is_inverse) conjugate(x, n_ * lines);
    fft_(x, scratch, lines);
    if (is_inverse) conjugate(x, n_ * lines);
  }

  /// Transforms a line to another place. Thread-safe.
  template <class In, class Out>
  void operator()(const In* from, Out* to, Complex* line) const {
    if constexpr (std::is_same_v<In, T> && std::is_same_v<Out, T>) waves(from, to, line);
    else discrete(from, to, line);
  }

 private:
  template <class In, class Out>
  void discrete(const In* from, Out* to, Complex* line) const {
    constexpr bool is_hermitian = !std::is_same_v<Out, Complex>;
    const index_t given = is_hermitian ? n_ / 2 + 1 : n_;
    for (index_t k = 0; k < given; ++k) line[k] = from[k];
    if constexpr (is_hermitian) {
      line[0] = line[0].real();
      if (n_ % 2 == 0) line[n_ / 2] = line[n_ / 2].real();
      for (index_t k = 1; k < n_ - k; ++k) line[n_ - k] = std::conj(line[k]);
    }
    const bool is_inverse = kind_ == LineTransformKind::inverse || is_hermitian;
    if (is_inverse) conjugate(line, n_);
    fft_(line, line + n_);
    if (is_inverse) conjugate(line, n_);
    const index_t kept = std::is_same_v<In, T> ? n_ / 2 + 1 : n_;
    for (index_t k = 0; k < kept; ++k) {
      if constexpr (is_hermitian) to[k] = line[k].real();
      else to[k] = line[k];
    }
  }

  /// Cosine and sine transforms are parts of one of complex numbers as long as the period, since
  ///
  ///     (j + a) (k + b) = a (k + b) + b j + j k
  ///
  /// with zeros beyond the n elements.
  void waves(const T* from, T* to, Complex* line) const {
    const kernels::Waves waves(kind_);
    const index_t period = fft_length_;
    for (index_t j = 0; j < n_; ++j) {
      const T weight = waves.is_end_in(j, n_) ? T(1) : T(2);
      line[j] = weight * from[j] * phase(waves.shift_out2 * j, 2 * period);
    }
    for (index_t j = n_; j < period; ++j) line[j] = 0;
    fft_(line, line + period);
    for (index_t k = 0; k < n_; ++k) {
      const index_t half_steps = waves.shift_in2 * (2 * k + waves.shift_out2);
      const Complex y = phase(half_steps, 4 * period) * line[k];
      to[k] = waves.is_sine ? -y.imag() : y.real();
    }
  }

  /// exp(-2πi part / whole)
  static Complex phase(index_t part, index_t whole) {
    const double angle = -2 * 3.14159265358979323846 * (double(part) / double(whole));
    return Complex(T(std::cos(angle)), T(std::sin(angle)));
  }

  /// The inverse transform is the conjugate of the transform of conjugates.
  static void conjugate(Complex* line, index_t count) {
    for (index_t k = 0; k < count; ++k) line[k] = std::conj(line[k]);
  }

  LineTransformKind kind_;
  index_t n_, fft_length_;
  MixedRadixFft<T> fft_;
};

}  // namespace cleave::inline v0::kernels
