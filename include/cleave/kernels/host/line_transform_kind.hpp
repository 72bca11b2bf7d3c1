// What transforms of lines compute.
#pragma once

#include <cstdint>

namespace cleave::kernels {

/// What a line of n elements becomes.
enum class LineTransformKind : std::uint8_t {
  forward,    ///< n complex numbers -> n, with exp(-2πi jk / n)
  inverse,    ///< n complex numbers -> n, with exp(+2πi jk / n); not divided by n
  real,       ///< n real numbers -> the first n/2 + 1 of the n that `forward` gives
  hermitian,  ///< the first n/2 + 1 of n complex numbers -> the n real ones that `inverse` gives
};

}  // namespace cleave::kernels
