// Exact sums as fixed-point numbers (Kulisch accumulators). Every finite sum of floats is a
// multiple of the smallest float, so integers can hold it without rounding and add in any order.
//
// A sum has `digits` words of 64 bits, each with a 32-bit digit and room for carries, and a last
// word that counts NaNs and infinities. Sums are added word by word; `carry` normalises the digits
// to 32 bits. Products have twice the exponent range.
#pragma once

#include <cstdint>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::kernels {

using ExactWord = std::int64_t;

/// The powers of two that an exact sum covers.
struct ExactFormat {
  int lowest = 0;  ///< exponent of the lowest bit
  int digits = 0;

  constexpr int words() const { return digits + 1; }
};

namespace detail {

/// The storage format of a real type.
template <class T>
struct FloatBits;
template <>
struct FloatBits<double> {
  using Bits = std::uint64_t;
  static constexpr int fraction = 52, lowest = -1074, highest = 1024;
};
template <>
struct FloatBits<float> {
  using Bits = std::uint32_t;
  static constexpr int fraction = 23, lowest = -149, highest = 128;
};
template <>
struct FloatBits<half> {
  using Bits = std::uint16_t;
  static constexpr int fraction = 10, lowest = -24, highest = 16;
};
template <>
struct FloatBits<bfloat16> {
  using Bits = std::uint16_t;
  static constexpr int fraction = 7, lowest = -133, highest = 128;
};

/// Marks in the last word, each a field of 21 bits: the words of up to 2^21 - 1 ranks can be added.
inline constexpr ExactWord minus_infinity = 1, plus_infinity = ExactWord(1) << 21,
                           not_a_number = ExactWord(1) << 42;
inline constexpr ExactWord digit_mask = 0xffffffff;

/// Adds digits to words of one thread. Words that threads share have a class of the same interface.
struct PlainPut {
  ExactWord* words;
  CLEAVE_HOST_DEVICE void add(int at, ExactWord value) const { words[at] += value; }
  CLEAVE_HOST_DEVICE void mark(int at, ExactWord value) const { words[at] |= value; }
};

/// Adds ±magnitude · 2^exponent. @pre bits below the lowest one of the format are zero
template <class Put>
CLEAVE_HOST_DEVICE inline void put_digits(const ExactFormat& format, const Put& put,
                                          std::uint64_t magnitude, int exponent, bool negative) {
  int at = exponent - format.lowest;
  if (at < 0) magnitude = at > -64 ? magnitude >> -at : 0, at = 0;
  const int shift = at & 31, first = at >> 5;
  const std::uint64_t rest = (magnitude >> 1) >> (31 - shift);
  const ExactWord digit[] = {ExactWord(std::uint32_t(magnitude << shift)),
                             ExactWord(std::uint32_t(rest)), ExactWord(rest >> 32)};
  for (int i = 0; i < 3; ++i)
    if (digit[i] != 0) put.add(first + i, negative ? -digit[i] : digit[i]);
}

/// A finite double as ±magnitude · 2^exponent; the mark of an infinity or NaN.
struct Decomposed {
  std::uint64_t magnitude = 0;
  int exponent = 0;
  bool negative = false;
  ExactWord mark = 0;

  CLEAVE_HOST_DEVICE explicit Decomposed(double value) {
    const auto bits = __builtin_bit_cast(std::uint64_t, value);
    const int field = int(bits >> 52 & 0x7ff);
    magnitude = bits & 0xfffffffffffffu;
    negative = (bits >> 63) != 0;
    if (field == 0x7ff) {
      mark = magnitude != 0 ? not_a_number : negative ? minus_infinity : plus_infinity;
      return;
    }
    if (field != 0) magnitude |= std::uint64_t(1) << 52;
    exponent = (field == 0 ? 1 : field) - 1075;
  }
};

template <class Put>
CLEAVE_HOST_DEVICE inline void put_number(const ExactFormat& format, const Put& put, double value) {
  const Decomposed x(value);
  if (x.mark != 0) put.mark(format.digits, x.mark);
  else put_digits(format, put, x.magnitude, x.exponent, x.negative);
}

/// Adds a · b, multiplied in 32-bit halves: nothing is rounded, overflows or underflows.
template <class Put>
CLEAVE_HOST_DEVICE inline void put_product(const ExactFormat& format, const Put& put, double a,
                                           double b) {
  const Decomposed x(a), y(b);
  if (x.mark != 0 || y.mark != 0) {
    return put.mark(format.digits, Decomposed(a * b).mark);
  }
  const bool negative = x.negative != y.negative;
  const int exponent = x.exponent + y.exponent;
  const std::uint64_t x0 = x.magnitude & 0xffffffffu, x1 = x.magnitude >> 32,
                      y0 = y.magnitude & 0xffffffffu, y1 = y.magnitude >> 32;
  put_digits(format, put, x0 * y0, exponent, negative);
  put_digits(format, put, x0 * y1 + x1 * y0, exponent + 32, negative);
  put_digits(format, put, x1 * y1, exponent + 64, negative);
}

}  // namespace detail

/// The terms of an exact sum.
enum class ExactTerms : std::uint8_t { elements, squares, products };

/// The format of sums of up to 2^63 elements of T, or products of two of them. One digit lies below
/// the smallest number, for the fraction of a mean.
template <class T>
constexpr ExactFormat exact_format(ExactTerms terms) {
  using F = detail::FloatBits<real_t<T>>;
  const int factors = terms == ExactTerms::elements ? 1 : 2;
  const int lowest = factors * F::lowest - 32, highest = factors * F::highest + 64;
  return {lowest, (highest - lowest + 31) / 32};
}

/// The number of real sums: two for complex numbers, one for their squared magnitudes.
template <class T>
constexpr int exact_numbers(ExactTerms terms) {
  return is_complex<T> && terms != ExactTerms::squares ? 2 : 1;
}

/// The number of words in a sum of T.
template <class T>
constexpr index_t exact_words(ExactTerms terms) {
  return index_t(exact_numbers<T>(terms)) * exact_format<T>(terms).words();
}

/// Normalises the digits to 32 bits, except the most significant one, which has the sign.
/// @tparam Words  ExactWord*, or a class that is indexed and offset like it
template <class Words>
CLEAVE_HOST_DEVICE inline void carry(const ExactFormat& format, Words words) {
  ExactWord over = 0;
  for (int i = 0; i + 1 < format.digits; ++i) {
    const ExactWord word = words[i] + over;
    words[i] = word & detail::digit_mask;
    over = word >> 32;
  }
  words[format.digits - 1] = words[format.digits - 1] + over;
}

namespace detail {

/// The 64 leading bits of a number, ±bits · 2^exponent, and whether nonzero bits follow them.
struct Leading {
  std::uint64_t bits = 0;
  int exponent = 0;
  bool rest = false;  ///< whether nonzero bits follow the leading ones
  bool negative = false;
};

/// Replaces a number by its magnitude. @return whether the number was negative
template <class Words>
CLEAVE_HOST_DEVICE inline bool take_sign(const ExactFormat& format, Words words) {
  if (words[format.digits - 1] >= 0) return false;
  for (int i = 0; i < format.digits; ++i) words[i] = -words[i];
  carry(format, words);
  return true;
}

/// The 64 bits from `bit` downwards; bits below the lowest digit are zero.
template <class Words>
CLEAVE_HOST_DEVICE inline Leading leading_from(const ExactFormat& format, Words words, int bit) {
  Leading top;
  const int low = bit - 63;  // may be negative
  const auto digit = [&](int i) {
    return i >= 0 && i < format.digits ? std::uint64_t(words[i]) : std::uint64_t(0);
  };
  const int first = low >= 0 ? low >> 5 : -((31 - low) >> 5), shift = low - 32 * first;
  top.bits = digit(first) >> shift | digit(first + 1) << (32 - shift);
  if (shift > 0) top.bits |= digit(first + 2) << 32 << (32 - shift);
  top.rest = (digit(first) & ((std::uint64_t(1) << shift) - 1)) != 0;
  for (int i = first - 1; i >= 0 && !top.rest; --i) top.rest = words[i] != 0;
  top.exponent = format.lowest + low;
  return top;
}

/// The index of the highest bit that is set; -1 if the number is 0.
template <class Words>
CLEAVE_HOST_DEVICE inline int highest_bit(const ExactFormat& format, Words words) {
  for (int i = format.digits - 1; i >= 0; --i) {
    const ExactWord word = words[i];
    if (word == 0) continue;
    int bit = 32 * i;
    for (std::uint64_t rest = std::uint64_t(word) >> 1; rest != 0; rest >>= 1) ++bit;
    return bit;
  }
  return -1;
}

/// Divides a magnitude in place. @return whether there is a remainder
template <class Words>
CLEAVE_HOST_DEVICE inline bool divide(const ExactFormat& format, Words words,
                                      std::uint64_t divisor) {
  std::uint64_t remainder = 0;
  for (int i = format.digits - 1; i >= 0; --i) {
    const auto digit = std::uint64_t(words[i]);
    if (divisor <= 0xffffffffu) {
      const std::uint64_t part = remainder << 32 | digit;
      words[i] = ExactWord(part / divisor);
      remainder = part % divisor;
      continue;
    }
    std::uint64_t quotient = 0;
    for (int bit = 31; bit >= 0; --bit) {  // the remainder is below 2^63: no bit is lost
      remainder = remainder << 1 | (digit >> bit & 1u);
      quotient = quotient << 1 | std::uint64_t(remainder >= divisor);
      if (remainder >= divisor) remainder -= divisor;
    }
    words[i] = ExactWord(quotient);
  }
  return remainder != 0;
}

/// The square root of a magnitude: 64 bits from 128, by the digit-by-digit method.
template <class Words>
CLEAVE_HOST_DEVICE inline Leading root(const ExactFormat& format, Words words) {
  int bit = highest_bit(format, words);
  if (bit < 0) return {};
  if (((format.lowest + bit) & 1) == 0) ++bit;  // the lowest of 128 bits has an even exponent
  const Leading high = leading_from(format, words, bit);
  const Leading low = leading_from(format, words, bit - 64);
  // remainder (of up to 66 bits) = remainder · 4 + the next two bits of the square
  std::uint64_t root = 0, remainder = 0;
  bool carried = false;  // bit 64 of the remainder
  for (int i = 63; i >= 0; --i) {
    const std::uint64_t pair = (i >= 32 ? high.bits >> (2 * i - 64) : low.bits >> (2 * i)) & 3u;
    const std::uint64_t next = remainder << 2 | pair;
    const std::uint64_t top = (remainder >> 62) | (carried ? 4u : 0u);  // bits 64 and above
    const std::uint64_t trial = root << 2 | 1u, trial_top = root >> 62;
    const bool fits = top > trial_top || (top == trial_top && next >= trial);
    root = root << 1 | std::uint64_t(fits);
    remainder = fits ? next - trial : next;
    const std::uint64_t left = fits ? top - trial_top - std::uint64_t(next < trial) : top;
    carried = left != 0;
  }
  Leading result;
  result.bits = root;
  result.exponent = low.exponent / 2;
  result.rest = remainder != 0 || carried || low.rest;
  return result;
}

/// The nearest T, ties to even; infinite beyond the largest finite T.
template <class T>
CLEAVE_HOST_DEVICE inline T rounded(const Leading& x) {
  using F = FloatBits<T>;
  using Bits = typename F::Bits;
  constexpr std::uint64_t infinity = std::uint64_t(F::highest - F::lowest - F::fraction + 1)
                                     << F::fraction;
  std::uint64_t bits = 0;
  if (x.bits != 0) {
    int unit = x.exponent + 63 - F::fraction;  // exponent of the last bit that is kept
    if (unit < F::lowest) unit = F::lowest;
    const int drop = unit - x.exponent;  // at least 11
    std::uint64_t kept = 0;
    bool half = false, more = x.rest;
    if (drop < 64) {
      kept = x.bits >> drop;
      half = (x.bits >> (drop - 1) & 1u) != 0;
      more = more || (x.bits & ((std::uint64_t(1) << (drop - 1)) - 1)) != 0;
    } else if (drop == 64) {
      half = true;  // the first of 64 bits is set
      more = more || (x.bits << 1) != 0;
    }
    kept += std::uint64_t(half && (more || (kept & 1u) != 0));
    // a fraction with its leading bit adds one to the exponent; so does a carry out of it
    const auto place = std::uint64_t(unit - F::lowest);
    bits = place > std::uint64_t(F::highest - F::lowest) ? infinity : (place << F::fraction) + kept;
    if (bits > infinity) bits = infinity;
  }
  if (x.negative) bits |= std::uint64_t(1) << (8 * sizeof(Bits) - 1);
  if constexpr (sizeof(T) == 2) {
    T value;
    value.bits = Bits(bits);
    return value;
  } else {
    return __builtin_bit_cast(T, Bits(bits));
  }
}

/// The value of a sum that has marks: NaN or an infinity. 0 if it has none.
CLEAVE_HOST_DEVICE inline float marked_value(ExactWord marks) {
  constexpr ExactWord field = plus_infinity - 1;
  const bool minus = (marks & field) != 0, plus = (marks >> 21 & field) != 0;
  if ((marks >> 42) != 0 || (minus && plus)) return __builtin_nanf("");
  return minus ? -__builtin_inff() : plus ? __builtin_inff() : 0.0f;
}

}  // namespace detail

/// The operation applied to an exact sum before it is rounded.
struct ExactEpilogue {
  enum Kind : index_t { sum, mean, root };  // as wide as `count`: programs store it without padding

  Kind kind = sum;
  index_t count = 1;  ///< the divisor of a mean
};

namespace detail {

/// The real number that words represent. @see exact_value
template <class T, class Words>
CLEAVE_HOST_DEVICE inline T real_value(const ExactFormat& format, Words words,
                                       const ExactEpilogue& epilogue) {
  if (epilogue.kind == ExactEpilogue::mean && epilogue.count == 0) return T(__builtin_nanf(""));
  if (const ExactWord marks = words[format.digits]; marks != 0) return T(marked_value(marks));
  carry(format, words);
  if (epilogue.kind == ExactEpilogue::root) return rounded<T>(root(format, words));
  const bool negative = take_sign(format, words);
  bool remains = false;
  if (epilogue.kind == ExactEpilogue::mean)
    remains = divide(format, words, std::uint64_t(epilogue.count));
  const int bit = highest_bit(format, words);
  Leading top;
  if (bit >= 0) top = leading_from(format, words, bit);
  else if (remains) top.bits = 1, top.exponent = format.lowest - 80;
  top.rest = top.rest || remains;
  top.negative = negative && (top.bits != 0);
  return rounded<T>(top);
}

}  // namespace detail

/// The sum that words represent, divided by `count`, or its square root; rounded once.
/// @param words  overwritten
template <class T, class Words>
CLEAVE_HOST_DEVICE inline T exact_value(ExactTerms terms, Words words,
                                        const ExactEpilogue& epilogue) {
  const ExactFormat format = exact_format<T>(terms);
  using R = real_t<T>;
  const R real = detail::real_value<R>(format, words, epilogue);
  if constexpr (is_complex<T>)
    return terms == ExactTerms::squares
               ? T(real)
               : T(real, detail::real_value<R>(format, words + format.words(), epilogue));
  else return real;
}

}  // namespace cleave::inline v0::kernels
