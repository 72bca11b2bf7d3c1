// Global arrays of the naive side: double-precision complex numbers, whatever the element type,
// rounded to what that type can represent.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

#include "naive.hpp"

namespace cleave::testing {

using Number64 = std::complex<double>;

/// A row-major array.
struct Numbers {
  naive::Indices shape;
  std::vector<Number64> values;

  explicit Numbers(naive::Indices extents = {}) : shape(std::move(extents)) {
    std::size_t n = 1;
    for (const index_t extent : shape) n *= std::size_t(extent);
    values.resize(n);
  }
  std::size_t offset(const naive::Indices& index) const {
    std::size_t n = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      n = n * std::size_t(shape[d]) + std::size_t(index[d]);
    return n;
  }
  Number64& at(const naive::Indices& index) { return values[offset(index)]; }
  const Number64& at(const naive::Indices& index) const { return values[offset(index)]; }
};

inline bool is_integer(DType type) { return type >= DType::int8 && type <= DType::uint64; }
inline bool is_complex_type(DType type) {
  return type == DType::complex64 || type == DType::complex128;
}

/// A number rounded to the given element type.
inline Number64 rounded(DType type, const Number64& value) {
  if (is_complex_type(type)) return value;
  const double real = value.real();
  if (type == DType::boolean) return real != 0 ? 1 : 0;
  if (is_integer(type)) return std::trunc(real);
  return type == DType::float32 ? double(float(real)) : real;
}

/// Writes element i; numbers beyond the range of an integer type are clamped.
inline void store(DType type, void* data, std::size_t i, const Number64& value) {
  visit_dtype(type, [&]<class T>() {
    T& element = static_cast<T*>(data)[i];
    if constexpr (is_complex<T>) {
      element = T(typename T::value_type(value.real()), typename T::value_type(value.imag()));
    } else if constexpr (std::is_same_v<T, bool>) {
      element = value.real() != 0;
    } else if constexpr (std::is_integral_v<T>) {
      const double real = value.real();
      element = real >= double(std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max()
                : real <= double(std::numeric_limits<T>::lowest())
                    ? std::numeric_limits<T>::lowest()
                    : T(real);
    } else {
      element = T(accumulator_t<T>(value.real()));
    }
  });
}

inline Number64 load(DType type, const void* data, index_t i) {
  return visit_dtype(type, [&]<class T>() {
    const T& element = static_cast<const T*>(data)[i];
    if constexpr (is_complex<T>) return Number64(element.real(), element.imag());
    else return Number64(double(accumulator_t<T>(element)));
  });
}

inline bool close(const Number64& a, const Number64& b, double tolerance) {
  const auto same = [&](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           std::abs(x - y) <= tolerance * (1 + std::abs(x) + std::abs(y));
  };
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}

/// The tolerance for rounding errors in results of that type.
inline double tolerance_of(DType type) {
  if (type == DType::boolean || is_integer(type)) return 0;
  return type == DType::float32 || type == DType::complex64 ? 1e-5 : 1e-10;
}

inline Number64 combined(ReduceOp op, DType type, const Number64& a, const Number64& b) {
  switch (op) {
    case ReduceOp::product: return rounded(type, a * b);
    case ReduceOp::max: return a.real() < b.real() ? b : a;
    case ReduceOp::min: return b.real() < a.real() ? b : a;
    default: return rounded(type, a + b);
  }
}

}  // namespace cleave::testing
