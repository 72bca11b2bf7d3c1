// Transforms of one line without a library. @see fftw_line_transform.hpp for the same with FFTW
#pragma once

#include <complex>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/line_transform_kind.hpp>
#include <cleave/kernels/host/mixed_radix_fft.hpp>

namespace cleave::kernels {

/// A transform in place of lines of one length.
template <class T>
class PlainLineTransform {
 public:
  using Complex = std::complex<T>;

  PlainLineTransform(LineTransformKind kind, index_t n) : kind_(kind), n_(n), fft_(n) {}

  /// The number of elements of scratch memory.
  index_t scratch() const { return fft_.scratch(); }

  /// Transforms a line in place. Thread-safe.
  /// @param line  room for n complex numbers; real numbers lie one behind the other from its start
  /// on
  void operator()(Complex* line, Complex* scratch) const {
    T* const numbers = reinterpret_cast<T*>(line);
    if (kind_ == LineTransformKind::real) {
      for (index_t k = n_; k-- > 0;) line[k] = numbers[k];
    } else if (kind_ == LineTransformKind::hermitian) {
      line[0] = line[0].real();
      if (n_ % 2 == 0) line[n_ / 2] = line[n_ / 2].real();
      for (index_t k = 1; k < n_ - k; ++k) line[n_ - k] = std::conj(line[k]);
    }
    const bool is_inverse =
        kind_ == LineTransformKind::inverse || kind_ == LineTransformKind::hermitian;
    if (is_inverse) conjugate(line);
    fft_(line, scratch);
    if (kind_ == LineTransformKind::inverse) conjugate(line);
    if (kind_ == LineTransformKind::hermitian)
      for (index_t k = 0; k < n_; ++k) numbers[k] = line[k].real();
  }

 private:
  /// The inverse transform is the conjugate of the transform of conjugates.
  void conjugate(Complex* line) const {
    for (index_t k = 0; k < n_; ++k) line[k] = std::conj(line[k]);
  }

  LineTransformKind kind_;
  index_t n_;
  MixedRadixFft<T> fft_;
};

}  // namespace cleave::kernels
