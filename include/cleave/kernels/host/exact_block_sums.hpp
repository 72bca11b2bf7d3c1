// Sums a block of numbers without rounding, with the vector instructions of the processor.
//
// A block is split at fixed bits, as in pre-rounded summation (Rump, Ogita, Oishi; Demmel, Nguyen):
// adding x to a large number s rounds x to a multiple of the last bit of s; (s + x) - s is exactly
// that multiple, and subtracting it from x is exact too. With s large enough for a whole block, the
// multiples are added without rounding, and the remainders are small enough to be split again at
// lower bits. If no element then has a remainder, the two sums add up to that of the block.
#pragma once

#include <cstdint>
#include <cstring>

#include <cleave/core/config.hpp>

#if defined(__x86_64__) && defined(__GNUC__)
#define CLEAVE_EXACT_AVX 1
#endif

namespace cleave::kernels::detail {

/// 2^exponent. @pre it is a normal number
inline double power_of_two(int exponent) {
  return __builtin_bit_cast(double, std::uint64_t(exponent + 1023) << 52);
}

/// Vectors of `Bytes` bytes.
template <int Bytes>
struct Wide {
  static constexpr int lanes = Bytes / int(sizeof(double));
  typedef double Doubles __attribute__((vector_size(Bytes)));
  typedef std::int64_t Mask __attribute__((vector_size(Bytes)));
  typedef std::int32_t Ints __attribute__((vector_size(Bytes)));
  typedef std::uint32_t Bits __attribute__((vector_size(Bytes)));
  typedef float Floats __attribute__((vector_size(Bytes / 2)));

  // Vector types as template parameters, and results by reference: g++ diagnoses vectors of
  // dependent size in expressions of a class, and functions that return wide vectors.

  /// Loads elements that need not be aligned.
  template <class Vector, class T>
  [[gnu::always_inline]] static void load(const T* from, Vector& value) {
    std::memcpy(&value, from, sizeof(Vector));
  }

  template <class To = Doubles, class From = Floats>
  [[gnu::always_inline]] static void widen(const float* from, To& value) {
#if CLEAVE_EXACT_AVX && !defined(__clang__)
    if constexpr (Bytes > 16) {  // g++ 12 emits two half-width instructions and a shuffle
      asm("vcvtps2pd %1, %0" : "=v"(value) : "m"(*reinterpret_cast<const float(*)[lanes]>(from)));
    } else
#endif
    {
      From narrow;
      load(from, narrow);
      value = __builtin_convertvector(narrow, To);
    }
  }

  /// error = x · y - product
  template <class Vector>
  [[gnu::always_inline]] static void product_error(const Vector& x, const Vector& y,
                                                   const Vector& product, Vector& error) {
#if CLEAVE_EXACT_AVX && !defined(__clang__)
    if constexpr (Bytes > 16) {  // clang++ compiles the loop to one instruction, g++ does not
      error = x;
      asm("vfmsub213pd %2, %1, %0" : "+v"(error) : "v"(y), "v"(product));
    } else
#endif
    {
      for (int j = 0; j < lanes; ++j) error[j] = __builtin_fma(x[j], y[j], -product[j]);
    }
  }
};

/// The exponent of the least power of two above a magnitude.
inline int exponent_above(double magnitude) {
  return int(__builtin_bit_cast(std::uint64_t, magnitude) >> 52) - 1022;
}
/// Above this exponent, the sum of a block may overflow.
inline constexpr int highest_exponent = 1012;

/// The result of a pass over a block.
struct BlockSum {
  double high = 0, low = 0;  ///< their sum is that of the block, if `complete`
  double largest = 0;        ///< the largest magnitude; NaNs are ignored
  bool complete = false;
};

/// Reduces the elements of a vector by f: the halves, then their halves, ..
template <class T, class Vector, class F>
[[gnu::always_inline]] inline T across(const Vector& vector, const F& f) {
  constexpr int lanes = int(sizeof(Vector) / sizeof(T));
  T element[lanes];
  std::memcpy(element, &vector, sizeof(Vector));
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) element[j] = f(element[j], element[j + half]);
  return element[0];
}

// Operations for `across`. `larger_number` and `smaller_number` return a if b is NaN.
inline constexpr auto add_two = [](auto a, auto b) { return a + b; };
inline constexpr auto any_bits = [](auto a, auto b) { return a | b; };
inline constexpr auto larger_number = [](auto a, auto b) { return b > a ? b : a; };
inline constexpr auto smaller_number = [](auto a, auto b) { return b < a ? b : a; };

/// Adds the part of x that `sum` can hold; the remainder stays in x.
template <class Vector>
[[gnu::always_inline]] inline void split_off(Vector& sum, Vector& x) {
  const Vector with = sum + x;
  x -= with - sum;
  sum = with;
}

/// Likewise for the last split: a remainder sets bits of `left` other than the sign bit.
template <class Vector, class Mask>
[[gnu::always_inline]] inline void split_last(Vector& sum, const Vector& x, Mask& left) {
  const Vector with = sum + x;
  left |= Mask(x) ^ Mask(with - sum);
  sum = with;
}

/// Sums a block, split at two places.
/// @param exponent  2^exponent is above all magnitudes
template <int Bytes>
[[gnu::always_inline]] inline void split_block(const double* x, index_t n, int exponent,
                                               BlockSum& sum) {
  using W = Wide<Bytes>;
  using Vector = typename W::Doubles;
  using Mask = typename W::Mask;
  constexpr int vectors = 4, lanes = W::lanes;
  const double first = 1.5 * power_of_two(exponent + 10),
               second = 1.5 * power_of_two(exponent - 33);
  Vector high[vectors], low[vectors], most{};
  Mask left{};
  for (int q = 0; q < vectors; ++q) high[q] = first - Vector{}, low[q] = second - Vector{};
  for (index_t i = 0; i < n; i += vectors * lanes) {
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) {
      Vector value;
      W::load(x + i + q * lanes, value);
      const Vector magnitude = Vector(Mask(value) & 0x7fffffffffffffff);
      most = magnitude > most ? magnitude : most;
      split_off(high[q], value);
      split_last(low[q], value, left);
    }
  }
  for (int q = 0; q < vectors; ++q) high[q] -= first, low[q] -= second;
  const Vector all_high = (high[0] + high[1]) + (high[2] + high[3]);
  const Vector all_low = (low[0] + low[1]) + (low[2] + low[3]);
  const std::uint64_t any_left = across<std::uint64_t>(left, any_bits);
  sum = {across<double>(all_high, add_two), across<double>(all_low, add_two),
         across<double>(most, larger_number), any_left << 1 == 0};  // -0 is no remainder
}

/// The smallest magnitude, as the bits of a float, that can be summed in double without rounding in
/// a block with this highest exponent (biased, as in a float). At least that of the smallest float.
constexpr std::uint32_t least_beside(int highest) {
  constexpr int bits = 53 - 24 - 10;  // from the last bit of the smallest to the sum of a block
  return highest - bits > 1 ? std::uint32_t(highest - bits) << 23 : 1u;
}

/// Sums a block in double.
///
/// @param highest  an estimate of the highest exponent (biased, as in a float); corrected
/// @return whether nothing was rounded
template <int Bytes>
[[gnu::always_inline]] inline bool sum_block(const float* x, index_t n, int& highest, double& sum) {
  using W = Wide<Bytes>;
  using Doubles = typename W::Doubles;
  using Ints = typename W::Ints;
  using Bits = typename W::Bits;
  constexpr int vectors = 4, lanes = W::lanes;
  Doubles sums[vectors] = {};
  Ints most = {};
  Bits least = 0xffffffffu - Bits{};
  for (index_t i = 0; i < n; i += vectors * lanes) {
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; q += 2) {
      const float* from = x + i + q * lanes;
      Ints magnitude;
      Doubles first, second;
      W::load(from, magnitude);
      magnitude &= 0x7fffffff;
      most = magnitude > most ? magnitude : most;
      const Bits below = Bits(magnitude) - 1u;  // zeros wrap to the largest value
      least = below < least ? below : least;
      W::widen(from, first);
      W::widen(from + lanes, second);
      sums[q] += first;
      sums[q + 1] += second;
    }
  }
  sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  sum = across<double>(sums[0], add_two);

  // a sign bit is set if `most` or `least` is out of bounds; ~least excludes zeros
  const Bits lowest = least_beside(highest) - 1u - Bits{};
  const Bits outside = Bits((((highest + 1) << 23) - 1) - most) | ((least - lowest) & ~least);
  constexpr std::uint64_t signs = 0x8000000080000000u;
  if ((across<std::uint64_t>(outside, any_bits) & signs) == 0) return true;

  const auto largest = across<std::int32_t>(most, larger_number);
  const auto smallest = across<std::uint32_t>(least, smaller_number);
  highest = largest >> 23;
  if (highest < 255 && smallest >= least_beside(highest) - 1u) return true;
  highest = 0;
  return false;
}

}  // namespace cleave::kernels::detail
