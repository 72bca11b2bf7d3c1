// Sums a block of numbers, or of products of two, without rounding, by vector instructions.
//
// A number is split at a fixed bit, as in pre-rounded summation (Rump, Ogita, Oishi; Demmel,
// Nguyen): adding x to a large number s rounds x to a multiple of the last bit of s; (s + x) - s is
// exactly that multiple, and subtracting it from x is exact too. With s large enough for a whole
// block, the multiples are added without rounding. So are the remainders, if all numbers are in a
// range of powers of two that is not too wide. Floats in a narrow range need not be split.
// Products of doubles are split, and so are their rounding errors; those of floats are exact.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/kernels/host/widest_vectors.hpp>

namespace cleave::inline v0::kernels::detail {

/// 2^exponent. @pre it is a normal number
inline double power_of_two(int exponent) {
  return __builtin_bit_cast(double, std::uint64_t(exponent + 1023) << 52);
}

/// The exponent of the least power of two above a magnitude.
inline int exponent_above(double magnitude) {
  return int(__builtin_bit_cast(std::uint64_t, magnitude) >> 52) - 1022;
}

/// Vectors of `Bytes` bytes.
template <int Bytes>
struct Wide {
  static constexpr int lanes = Bytes / int(sizeof(double));
  typedef double Doubles __attribute__((vector_size(Bytes)));
  typedef float Floats __attribute__((vector_size(Bytes / 2)));

  // Vector types as template parameters, and results by reference: g++ diagnoses vectors of
  // dependent size in expressions of a class, and functions that return wide vectors.

  /// Loads elements that need not be aligned.
  template <class Vector>
  [[gnu::always_inline]] static void load(const double* from, Vector& value) {
    std::memcpy(&value, from, sizeof(Vector));
  }
  template <class Vector, class From = Floats>
  [[gnu::always_inline]] static void load(const float* from, Vector& value) {
#if defined(CLEAVE_VECTOR_TARGETS) && !defined(__clang__)
    if constexpr (Bytes > 16) {  // g++ 12 emits two half-width instructions and a shuffle
      asm("vcvtps2pd %1, %0" : "=v"(value) : "m"(*reinterpret_cast<const float(*)[lanes]>(from)));
    } else
#endif
    {
      From narrow;
      std::memcpy(&narrow, from, sizeof(From));
      value = __builtin_convertvector(narrow, Vector);
    }
  }

  /// error = x · y - product
  template <class Vector>
  [[gnu::always_inline]] static void product_error(const Vector& x, const Vector& y,
                                                   const Vector& product, Vector& error) {
#if defined(CLEAVE_VECTOR_TARGETS) && !defined(__clang__)
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

/// Vectors of T, and of integers of that size.
template <int Bytes, class T>
struct RangeVectors {
  using Int = std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>;
  using Unsigned = std::make_unsigned_t<Int>;
  typedef T Values __attribute__((vector_size(Bytes)));
  typedef Int Ints __attribute__((vector_size(Bytes)));
  typedef Unsigned Bits __attribute__((vector_size(Bytes)));
  static constexpr Int highest = Int(Unsigned(-1) >> 1);
};

/// The result of a pass over a block.
struct BlockSum {
  double parts[4] = {};   ///< their sum is that of the block, if `complete`
  double largest = 0;     ///< the largest magnitude; NaNs are ignored
  bool complete = false;  ///< whether the exponent and the range of the numbers allow that
  bool has_zero = false;  ///< whether a product of doubles is 0
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

/// Adds the part of x that `sum` can hold; the remainder stays in x.
template <class Vector>
[[gnu::always_inline]] inline void split_off(Vector& sum, Vector& x) {
  const Vector with = sum + x;
  x -= with - sum;
  sum = with;
}

/// Whether terms have rounding errors.
template <bool Products, class T>
inline constexpr bool rounds_terms = Products && std::is_same_v<T, double>;

/// The largest number of elements that a pass processes per step.
inline constexpr index_t pass_step = 32;

/// All magnitudes of a block must be below 2^exponent and, but for zeros, at least this many powers
/// of two below: the sum of the last bits of up to 1024 numbers, or of their remainders of at most
/// 2^(exponent - 43), has 53 digits; so has that of the remainders of errors, which begin at
/// 2^(exponent - 96) and end 106 digits below the smallest product.
template <bool Products, int Splits, class T>
inline constexpr int block_range =
    rounds_terms<Products, T> ? 33
                              : (Splits == 0 ? 44 : 87) - (std::is_same_v<T, double> ? 53
                                                           : Products                ? 48
                                                                                     : 24);

/// The pass with vectors of `Bytes` bytes. @see split_block
template <int Bytes, bool Products, int Splits, class T>
[[gnu::always_inline]] inline void split_by_vectors(const T* x, const T* y, index_t n, int exponent,
                                                    BlockSum& sum) {
  using W = Wide<Bytes>;
  using Vector = typename W::Doubles;
  // floats are compared as such, twice as many at a time
  using Range = RangeVectors<Bytes, std::conditional_t<Products, double, T>>;
  using Ints = typename Range::Ints;
  constexpr bool errors = rounds_terms<Products, T>;
  constexpr int vectors = errors ? 2 : 4;
  constexpr index_t line = 64 / index_t(sizeof(T)), ahead = 32 * line;
  constexpr int doubles_per_range = std::is_same_v<typename Range::Int, std::int32_t> ? 2 : 1;
  static_assert(pass_step % (vectors * W::lanes) == 0);
  const double first = Splits == 0 ? 0 : 1.5 * power_of_two(exponent + 10),
               second = errors ? 1.5 * power_of_two(exponent - 43) : 0;
  Vector high[vectors], low[vectors] = {}, error_high[vectors], error_low[vectors] = {},
                        least_product = 1 - Vector{};
  typename Range::Values most[vectors] = {};
  Ints least = Range::highest - Ints{};  // of bits + highest, which wraps: zeros are largest
  for (int q = 0; q < vectors; ++q) high[q] = first - Vector{}, error_high[q] = second - Vector{};
  for (index_t i = 0; i < n; i += vectors * W::lanes) {
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) {
      if (q * W::lanes % line == 0) {  // hardware prefetchers stop at the end of a page
        __builtin_prefetch(x + i + q * W::lanes + ahead);
        if constexpr (Products) __builtin_prefetch(y + i + q * W::lanes + ahead);
      }
      Vector term, error;
      W::load(x + i + q * W::lanes, term);
      if constexpr (Products) {
        Vector factor;
        W::load(y + i + q * W::lanes, factor);
        const Vector product = term * factor;
        if constexpr (errors) W::product_error(term, factor, product, error);
        term = product;
      }
      if (q % doubles_per_range == 0) {
        Ints bits;
        if constexpr (doubles_per_range == 1) bits = Ints(term);
        else std::memcpy(&bits, x + i + q * W::lanes, sizeof(bits));
        bits &= Range::highest;
        const auto magnitude = typename Range::Values(bits);
        most[q] = magnitude > most[q] ? magnitude : most[q];
        const Ints place =
            Ints(typename Range::Bits(bits) + typename Range::Unsigned(Range::highest));
        least = place < least ? place : least;
        if constexpr (errors) least_product = magnitude < least_product ? magnitude : least_product;
      }
      if constexpr (Splits > 0) split_off(high[q], term);
      low[q] += term;
      if constexpr (errors) {
        split_off(error_high[q], error);
        error_low[q] += error;
      }
    }
  }
  CLEAVE_UNROLL
  for (int q = 0; q < vectors; ++q) {
    high[q] -= first;
    error_high[q] -= second;
    if (q == 0) continue;
    high[0] += high[q], low[0] += low[q];
    error_high[0] += error_high[q], error_low[0] += error_low[q];
    most[0] = most[q] > most[0] ? most[q] : most[0];
  }
  using Value = std::conditional_t<doubles_per_range == 1, double, float>;
  const auto larger = [](auto a, auto b) { return b > a ? b : a; };
  const auto smaller = [](auto a, auto b) { return b < a ? b : a; };
  const auto add = [](double a, double b) { return a + b; };
  sum = {{across<double>(high[0], add), across<double>(low[0], add),
          across<double>(error_high[0], add), across<double>(error_low[0], add)},
         across<Value>(most[0], larger)};
  sum.has_zero = across<double>(least_product, smaller) == 0;
  const auto bits = typename Range::Unsigned(across<typename Range::Int>(least, smaller)) -
                    typename Range::Unsigned(Range::highest);
  const double smallest = __builtin_bit_cast(Value, bits);  // 0 if there are only zeros
  const int above = Splits == 0 ? exponent_above(sum.largest) : exponent;
  sum.complete =
      sum.largest < power_of_two(above) &&
      (smallest >= power_of_two(above - block_range<Products, Splits, T>) || smallest == 0);
}

#if defined(CLEAVE_VECTOR_TARGETS)
template <bool Products, int Splits, class T>
[[gnu::target("avx2,fma")]] void split_block_256(const T* x, const T* y, index_t n, int exponent,
                                                 BlockSum& sum) {
  split_by_vectors<32, Products, Splits>(x, y, n, exponent, sum);
}
#if !defined(__CUDACC__)  // whose front end ends with a fault at vectors of 64 bytes
template <bool Products, int Splits, class T>
[[gnu::target("avx512f,fma")]] void split_block_512(const T* x, const T* y, index_t n, int exponent,
                                                    BlockSum& sum) {
  split_by_vectors<64, Products, Splits>(x, y, n, exponent, sum);
}
#endif
#endif

/// Adds x[i], or x[i] · y[i], for i < n.
///
/// @tparam Splits   how often numbers are split: once, or for floats not at all
/// @param n         a multiple of pass_step, at most 1024
/// @param exponent  2^exponent must be above all magnitudes; not used if numbers are not split
/// @param bytes     the size of vectors; the sum does not depend on it. Arrays in cache take 0.75
///                  times as long with 64 as with 32, with 16 up to 3 times as long
template <bool Products, int Splits, class T>
void split_block(const T* x, const T* y, index_t n, int exponent, BlockSum& sum,
                 int bytes = widest_vectors()) {
#if defined(CLEAVE_VECTOR_TARGETS)
#if !defined(__CUDACC__)
  if (bytes >= 64) return split_block_512<Products, Splits>(x, y, n, exponent, sum);
#endif
  if (bytes >= 32) return split_block_256<Products, Splits>(x, y, n, exponent, sum);
#endif
  split_by_vectors<16, Products, Splits>(x, y, n, exponent, sum);
}

}  // namespace cleave::inline v0::kernels::detail
