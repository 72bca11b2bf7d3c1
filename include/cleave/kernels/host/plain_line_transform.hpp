// Transforms of lines without a library. @see fftw_line_transform.hpp for the same with FFTW
#pragma once

#include <complex>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>
#include <cleave/kernels/host/mixed_radix_fft.hpp>

namespace cleave::kernels {

/// A transform in place of lines of one length.
template <class T>
class PlainLineTransform {
 public:
  using Complex = std::complex<T>;

  PlainLineTransform(LineTransformKind kind, index_t n, bool = false)
      : kind_(kind), n_(n), fft_(n) {}

  /// The number of elements of scratch memory.
  index_t scratch() const { return n_ + fft_.scratch(); }

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

 private:
  /// The inverse transform is the conjugate of the transform of conjugates.
  static void conjugate(Complex* line, index_t count) {
    for (index_t k = 0; k < count; ++k) line[k] = std::conj(line[k]);
  }

  LineTransformKind kind_;
  index_t n_;
  MixedRadixFft<T> fft_;
};

}  // namespace cleave::kernels
