// Fourier transforms.
#pragma once

#include <complex>

#include <cleave/ops/transforms/cosine_sine.hpp>
#include <cleave/ops/transforms/fourier.hpp>
#include <cleave/ops/transforms/spectral.hpp>

#include "listed.hpp"

namespace cleave::ops {

/// The operations on lines that are whole on a rank.
using LineParts =
    PartsOf<FourierLines<0, false>, RealLines<0>, HermitianLines<0>, WaveLines<0, false>>;

namespace listing {

/// A factor that depends on both wave numbers, with an imaginary part.
struct SomeWaves {
  constexpr std::complex<double> operator()(const WaveNumbers<2>& k) const {
    return {0.5 + k[0], k[1] - 2};
  }
};

template <class Visit>
constexpr void each_transform(const Visit& visit) {
  visit(listed<Fourier<3, false>, SameTypes<1, Complex>, DimsOf<2>>(CLEAVE_CALL_1(x, fft(x)), "",
                                                                    Fourier<3, false>{{}, 1}));
  visit(listed<Fourier<1, false>, SameTypes<1, Complex>, DimsOf<3>>(
      "fft(x, dim<0>{}); x has three dimensions", [](const auto& x) { return fft(x, dim<0>{}); },
      "", Fourier<1, false>{{}, 1}));
  visit(listed<Fourier<3, true>, SameTypes<1, Complex>, DimsOf<2>>(
      "ifft(x, dim<0, 1>{}, Norm::none)",
      [](const auto& x) { return ifft(x, dim<0, 1>{}, cleave::Norm::none); }, "",
      Fourier<3, true>{{}, 1}));
  visit(listed<RealFourier<1, 1>, SameTypes<1, double, float>, DimsOf<2>>(
      CLEAVE_CALL_1(x, rfft(x, dim<0, 1>{})), "", RealFourier<1, 1>{}));
  visit(listed<HermitianFourier<1, 1>, SameTypes<1, Complex>, DimsOf<2>>(
      "irfft(x, dim<0, 1>{}, -1, Norm::none)",
      [](const auto& x) { return irfft(x, dim<0, 1>{}, -1, cleave::Norm::none); }, "",
      HermitianFourier<1, 1>{}));
  visit(listed<WaveTransform<3, false>, SameTypes<1, double, float>, DimsOf<2>>(
      CLEAVE_CALL_1(x, dct(x)), "", WaveTransform<3, false>{}));
  visit(listed<WaveTransform<3, false>, SameTypes<1, double>, DimsOf<2>>(
      "dct(x, dim<0, 1>{}, 1, Norm::ortho)",
      [](const auto& x) { return dct(x, dim<0, 1>{}, 1, cleave::Norm::ortho); }, "",
      WaveTransform<3, false>{{}, detail::wave_sums(1, false, false, cleave::Norm::ortho)}));
  visit(listed<WaveTransform<2, true>, SameTypes<1, double>, DimsOf<2>>(
      "idst(x, dim<1>{}, 2, Norm::ortho)",
      [](const auto& x) { return idst(x, dim<1>{}, 2, cleave::Norm::ortho); }, "",
      WaveTransform<2, true>{{}, detail::wave_sums(2, true, true, cleave::Norm::ortho)}));
  visit(listed<TimesOfWaves<SomeWaves, 2, 1>, SameTypes<1, Complex>, DimsOf<2>>(
      "spectral(x, f); its factor of each mode",
      [](const auto& x) { return call_op(TimesOfWaves<SomeWaves, 2, 1>{}, x); }));
}

}  // namespace listing

}  // namespace cleave::ops
