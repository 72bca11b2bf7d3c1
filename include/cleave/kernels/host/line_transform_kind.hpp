// What transforms of lines compute.
#pragma once

#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

/// What a line of n elements becomes.
enum class LineTransformKind : std::uint8_t {
  forward,    ///< n complex numbers -> n, with exp(-2πi jk / n)
  inverse,    ///< n complex numbers -> n, with exp(+2πi jk / n); not divided by n
  real,       ///< n real numbers -> the first n/2 + 1 of the n that `forward` gives
  hermitian,  ///< the first n/2 + 1 of n complex numbers -> the n real ones that `inverse` gives
  cosine1,    ///< this and all below: n real numbers -> n real ones, @see Waves
  cosine2,
  cosine3,
  cosine4,
  sine1,
  sine2,
  sine3,
  sine4,
};

constexpr bool is_cosine_or_sine(LineTransformKind kind) {
  return kind >= LineTransformKind::cosine1;
}

/// The sums of cosine and sine transforms, those of SciPy and of FFTW's REDFT and RODFT:
///
///     y[k] = 2 Σ_j w[j] x[j] cos(2π (j + shift_in) (k + shift_out) / period)      or sin
///
/// w[j] is 1/2 where the wave would be counted twice, at the ends of x, and 1 elsewhere. Without w,
/// type 3 is the transpose of type 2, and the other types are symmetric.
struct Waves {
  bool is_sine = false;
  int type = 2;              ///< 1 to 4
  int shift_in2 = 1;         ///< 2 shift_in
  int shift_out2 = 0;        ///< 2 shift_out
  int period_beyond_2n = 0;  ///< period - 2 n

  constexpr explicit Waves(LineTransformKind kind)
      : is_sine(kind >= LineTransformKind::sine1),
        type(int(kind) - int(is_sine ? LineTransformKind::sine1 : LineTransformKind::cosine1) + 1),
        shift_in2(type == 2 || type == 4 ? 1
                  : is_sine              ? 2
                                         : 0),
        shift_out2(type == 3 || type == 4 ? 1
                   : is_sine              ? 2
                                          : 0),
        period_beyond_2n(type != 1 ? 0
                         : is_sine ? 2
                                   : -2) {}

  constexpr index_t period(index_t n) const { return 2 * n + period_beyond_2n; }
  /// Which elements w halves, and which ones of the result the transposed transform would halve.
  constexpr bool is_end_in(index_t j, index_t n) const { return is_end(type == 3, j, n); }
  constexpr bool is_end_out(index_t k, index_t n) const { return is_end(type == 2, k, n); }

 private:
  constexpr bool is_end(bool is_there, index_t i, index_t n) const {
    if (type == 1) return !is_sine && (i == 0 || i == n - 1);
    return is_there && i == (is_sine ? n - 1 : 0);
  }
};

}  // namespace cleave::inline v0::kernels
