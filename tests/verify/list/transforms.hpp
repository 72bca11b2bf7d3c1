// Fourier transforms.
#pragma once

#include <cleave/ops/transforms/fourier.hpp>

#include "listed.hpp"

namespace cleave::ops {

/// The operations on lines that are whole on a rank.
using LineParts = PartsOf<FourierLines<0, false>, RealLines<0>, HermitianLines<0>>;

namespace listing {

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
}

}  // namespace listing

}  // namespace cleave::ops
