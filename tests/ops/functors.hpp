// Elementwise functions that tests pass to map, for the host's compiler and for nvcc.
#pragma once

#include <complex>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::testing {

struct Curve {
  CLEAVE_HOST_DEVICE double operator()(double a, double b) const { return a * a + 3 * b; }
};

struct IsPositive {
  CLEAVE_HOST_DEVICE bool operator()(double v) const { return v > 0; }
};

/// Declares the partials in which it is linear.
struct Halve {
  static constexpr const char* partials = "sum->sum; max->max";
  CLEAVE_HOST_DEVICE double operator()(double v) const { return v / 2; }
};

/// The same function without the declaration.
struct PlainHalve {
  CLEAVE_HOST_DEVICE double operator()(double v) const { return v / 2; }
};

/// Takes three element types and returns another.
struct Exceeds {
  CLEAVE_HOST_DEVICE bool operator()(float a, std::int64_t b, double c) const {
    return a > float(b) * float(c);
  }
};

struct Joined {
  CLEAVE_HOST_DEVICE std::complex<double> operator()(double imaginary, float real) const {
    return {double(real), imaginary};
  }
};

}  // namespace cleave::testing
