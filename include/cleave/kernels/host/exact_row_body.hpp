// Definitions for exact_row.hpp.
#pragma once

#include <cstring>

#include <cleave/kernels/host/exact_block.hpp>
#include <cleave/kernels/host/exact_row.hpp>

namespace cleave::kernels {

namespace detail {

// With -ffast-math, compilers may simplify (s + x) - s to x.
#if defined(__FAST_MATH__)
inline constexpr bool splits_blocks = false;
#else
inline constexpr bool splits_blocks = true;
#endif

/// The largest number of elements that a pass processes per step.
inline constexpr index_t pass_step = 32;
constexpr index_t whole_steps(index_t n) { return (n + pass_step - 1) / pass_step * pass_step; }

/// The last elements of a row, padded with zeros.
template <class T>
struct Filled {
  T elements[ExactRows::block];

  Filled(const T* from, index_t n) {
    std::memcpy(elements, from, std::size_t(n) * sizeof(T));
    for (index_t j = n; j < whole_steps(n); ++j) elements[j] = T(0);
  }
};

/// Calls f(n, elements..) for all blocks of rows; the last one is padded with zeros.
template <class F, class... T>
void each_block(const F& f, index_t n, const T*... row) {
  constexpr index_t block = ExactRows::block;
  index_t i = 0;
  for (; i + block <= n; i += block) f(block, (row + i)...);
  if (i < n) f(whole_steps(n - i), Filled<T>(row + i, n - i).elements...);
}

}  // namespace detail

CLEAVE_INLINE ExactRows::ExactRows(const ExactFormat& format, ExactWord* words)
    : format_(format), words_(words) {
  for (int i = 0; i < format.words(); ++i) words[i] = 0;
}

CLEAVE_INLINE void ExactRows::count(index_t additions) {
  if ((additions_ += additions) < index_t(1) << 29) return;
  carry(format_, words_);
  additions_ = additions;
}

CLEAVE_INLINE void ExactRows::add_one(double value) {
  if (value != 0) detail::put_number(format_, detail::PlainPut{words_}, value);
}

CLEAVE_INLINE void ExactRows::add_slowly(const double* x, index_t n) {
  count(n);
  for (index_t i = 0; i < n; ++i) add_one(x[i]);
}

CLEAVE_INLINE void ExactRows::add_block(const double* x, index_t n) {
  constexpr int lowest = -989;  // below, all numbers are multiples of the last bit split off
  detail::BlockSum sum;
  for (int tries = 0; detail::splits_blocks && tries < 2; ++tries) {
    detail::block_passes().split(x, n, exponent_, sum);
    const bool covers = sum.largest < detail::power_of_two(exponent_);
    if (covers && sum.complete) {
      count(2);
      add_one(sum.high);
      return add_one(sum.low);
    }
    const int above = detail::exponent_above(sum.largest), found = above < lowest ? lowest : above;
    if (found > detail::highest_exponent || found == exponent_) break;
    exponent_ = found;
  }
  add_slowly(x, n);
}

CLEAVE_INLINE void ExactRows::add(const double* row, index_t n) {
  detail::each_block([&](index_t count, const double* x) { add_block(x, count); }, n, row);
}

CLEAVE_INLINE void ExactRows::add(const float* row, index_t n) {
  detail::each_block(
      [&](index_t many, const float* x) {
        double sum = 0;
        if (detail::block_passes().sum(x, many, float_exponent_, sum)) {
          count(1);
          return add_one(sum);
        }
        double wide[block];
        for (index_t j = 0; j < many; ++j) wide[j] = x[j];
        add_block(wide, many);
      },
      n, row);
}

CLEAVE_INLINE void ExactRows::add_products(const double* a, const double* b, index_t n) {
  detail::each_block(
      [&](index_t many, const double* x, const double* y) { add_product_block(x, y, many); }, n, a,
      b);
}

CLEAVE_INLINE void ExactRows::add_product_block(const double* a, const double* b, index_t n) {
  // below, the part that is split off last is no longer normal
  constexpr int lowest = -800;
  detail::ProductSum sum;
  int places = wide_blocks_ > 0 ? 4 : 3;
  wide_blocks_ -= wide_blocks_ > 0;
  bool narrow = any_range_ == 0;
  any_range_ -= !narrow;
  for (int tries = 0; detail::splits_blocks && tries < 4; ++tries) {
    detail::block_passes().products[narrow ? 2 : places - 3](a, b, n, exponent_, sum);
    const bool covers = sum.largest < detail::power_of_two(exponent_);
    if (covers && sum.complete) {
      if (sum.least < detail::power_of_two(detail::least_product) && detail::any_vanishes(a, b, n))
        break;
      if (!narrow && places == 3) failures_ = 0;
      count(4);
      for (const double part : sum.parts) add_one(part);
      return;
    }
    const int found = detail::exponent_above(sum.largest);
    if (covers && narrow && (found >= exponent_ || found < lowest)) {
      narrow = false;
      any_range_ = any_range_blocks;
      continue;
    }
    if (found > detail::highest_exponent || found < lowest) break;
    if (found == exponent_) {
      if (places == 4) break;
      places = 4;
      failures_ = failures_ < 32 ? 2 * failures_ + 1 : 63;
      wide_blocks_ = failures_ / 2;
    }
    exponent_ = found;
  }
  double products[block], errors[block];
  detail::multiply_exactly(a, b, n, products, errors);
  add_special(a, b, n, products, errors);
  const int exponent = exponent_;
  add_block(products, n);
  add_block(errors, n);
  exponent_ = exponent;
}

CLEAVE_INLINE void ExactRows::add_special(const double* a, const double* b, index_t n,
                                          double* products, double* errors) {
  count(3 * n);
  for (index_t i = 0; i < n; ++i) {
    const double magnitude = __builtin_fabs(products[i]);
    if (magnitude >= detail::power_of_two(detail::least_product) &&
        magnitude <= detail::power_of_two(1023))
      continue;
    products[i] = errors[i] = 0;
    if (a[i] != 0 && b[i] != 0) detail::put_product(format_, detail::PlainPut{words_}, a[i], b[i]);
    else if (magnitude != 0) detail::put_number(format_, detail::PlainPut{words_}, magnitude);
  }
}

CLEAVE_INLINE void ExactRows::add_products(const float* a, const float* b, index_t n) {
  detail::each_block(
      [&](index_t many, const float* x, const float* y) {
        double products[block];
        detail::block_passes().multiply(x, y, many, products);
        add_block(products, many);
      },
      n, a, b);
}

}  // namespace cleave::kernels
