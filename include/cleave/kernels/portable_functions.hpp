// Logarithm, sine, cosine and the quantiles of the normal distribution, bitwise identical on every
// machine and device. Math libraries differ in the last bit; these functions use only operations
// that IEEE 754 rounds correctly: + - * / sqrt and fma.
//
// Products are added only by explicit fma, so that the contraction of multiply-adds by compilers
// makes no difference.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

/// c0 + x (c1 + x (c2 + ..)).
template <class... C>
CLEAVE_HOST_DEVICE double polynomial(double x, double c0, C... rest) {
  if constexpr (sizeof...(C) == 0) return c0;
  else return std::fma(x, polynomial(x, rest...), c0);
}

/// The natural logarithm of a positive normal number, by the series of atanh.
CLEAVE_HOST_DEVICE inline double portable_log(double x) {
  constexpr std::uint64_t one = std::uint64_t(1023) << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = double(std::int64_t(bits >> 52) - 1023);
  auto m = std::bit_cast<double>((bits & ((std::uint64_t(1) << 52) - 1)) | one);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  const double s = (m - 1) / (m + 1), z = s * s;  // log m = 2 atanh s, |s| < 0.172
  const double series = polynomial(z, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13,
                                   1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21);
  const double half_log = std::fma(s * z, series, s);
  return std::fma(exponent, 0.69314718055994531, 2 * half_log);
}

struct CosineSine {
  double cosine, sine;
};

/// cos(2 pi t) and sin(2 pi t), for t in [0, 1) a multiple of 2^-53, by their Taylor series after
/// reduction to [-pi/4, pi/4].
CLEAVE_HOST_DEVICE inline CosineSine portable_turn(double t) {
  const int quarter = int(4 * t + 0.5);  // both exact: NOLINT(bugprone-incorrect-roundings)
  const double x = 6.2831853071795865 * (t - quarter * 0.25), z = x * x;
  const double s =
      std::fma(x * z,
               polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                          1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000),
               x);
  const double c = polynomial(z, 1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                              1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000,
                              -1.0 / 6402373705728000);
  switch (quarter & 3) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

/// The p-quantile of the standard normal distribution, for p in (0, 1), to about 1e-16.
///
/// M. J. Wichura: Algorithm AS 241: The percentage points of the normal distribution. Applied
/// Statistics 37 (1988), 477-484.
CLEAVE_HOST_DEVICE inline double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = std::fma(-q, q, 0.180625);
    return q *
           polynomial(r, 3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                      3.3430575583588128105e4, 2.5090809287301226727e3) /
           polynomial(r, 1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
                      5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
                      2.8729085735721942674e4, 5.2264952788528545610e3);
  }
  const double tail = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  double z;
  if (tail <= 5) {
    const double r = tail - 1.6;
    z = polynomial(r, 1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                   3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                   2.27238449892691845833e-2, 7.74545014278341407640e-4) /
        polynomial(r, 1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
                   6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
                   5.47593808499534494600e-4, 1.05075007164441684324e-9);
  } else {
    const double r = tail - 5;
    z = polynomial(r, 6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                   2.71155556874348757815e-5, 2.01033439929228813265e-7) /
        polynomial(r, 1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                   1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
                   1.42151175831644588870e-7, 2.04426310338993978564e-15);
  }
  return q < 0 ? -z : z;
}

/// The standard normal distribution function: the inverse of `normal_quantile` at z, by bisection
/// over the doubles in (0, 1/2). 0 for z below about -37.5.
inline double normal_probability(double z) {
  if (z > 0) return 1 - normal_probability(-z);
  std::uint64_t below = std::uint64_t(1) << 52;  // the smallest normal number
  auto above = std::bit_cast<std::uint64_t>(0.5);
  if (z < normal_quantile(std::bit_cast<double>(below))) return 0;
  while (above - below > 1) {
    const std::uint64_t middle = below + (above - below) / 2;
    if (normal_quantile(std::bit_cast<double>(middle)) < z) below = middle;
    else above = middle;
  }
  return std::bit_cast<double>(above);
}

}  // namespace cleave::inline v0::kernels
