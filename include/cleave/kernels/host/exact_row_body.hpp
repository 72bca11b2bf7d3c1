// Definitions for exact_row.hpp.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <cleave/kernels/host/exact_block.hpp>
#include <cleave/kernels/host/exact_row.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

// With -ffast-math, compilers may simplify (s + x) - s to x.
#if defined(__FAST_MATH__)
inline constexpr bool splits_blocks = false;
#else
inline constexpr bool splits_blocks = true;
#endif

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

/// Whether a product of nonzero numbers underflows to 0.
inline bool any_vanishes(const double* a, const double* b, index_t n) {
  bool any = false;
  for (index_t i = 0; i < n; ++i) any |= int(a[i] * b[i] == 0) & int(a[i] != 0) & int(b[i] != 0);
  return any;
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

template <bool Products, int Splits, class T>
bool ExactRows::add_at_once(const T* a, const T* b, index_t n) {
  constexpr bool errors = detail::rounds_terms<Products, T>;
  // Above the highest exponent, the sum of a block may overflow. At the lowest, all numbers are in
  // range; of products, no error is subnormal.
  constexpr int highest = 1012,
                lowest = errors ? -900 : detail::block_range<Products, Splits, T> - 1023;
  if (!detail::splits_blocks) return false;
  for (int tries = 0; tries < 1 + Splits; ++tries) {
    detail::BlockSum sum;
    detail::split_block<Products, Splits>(a, b, n, exponent_, sum);
    if (sum.complete) {
      if constexpr (errors)
        if (sum.has_zero && detail::any_vanishes(a, b, n)) return false;
      count(4);
      for (const double part : sum.parts) add_one(part);
      return true;
    }
    const int above = detail::exponent_above(sum.largest), found = above < lowest ? lowest : above;
    if (found > highest || found == exponent_) return false;
    exponent_ = found;
  }
  return false;
}

template <bool Products, class T>
void ExactRows::add_block(const T* a, const T* b, index_t n) {
  if constexpr (!Products && std::is_same_v<T, float>)
    if (add_at_once<Products, 0>(a, b, n)) return;
  if (add_at_once<Products, 1>(a, b, n)) return;
  count(3 * n);
  for (index_t i = 0; i < n; ++i) {
    if constexpr (detail::rounds_terms<Products, T>)
      detail::put_product(format_, detail::PlainPut{words_}, a[i], b[i]);
    else add_one(Products ? double(a[i]) * double(b[i]) : double(a[i]));
  }
}

template <bool Products, class T>
void ExactRows::add_row(const T* a, const T* b, index_t n) {
  for (; n >= block; n -= block, a += block, b += block) add_block<Products>(a, b, block);
  if (n == 0) return;
  const detail::Filled<T> x(a, n);
  if constexpr (Products)
    add_block<true>(x.elements, detail::Filled<T>(b, n).elements, detail::whole_steps(n));
  else add_block<false>(x.elements, x.elements, detail::whole_steps(n));
}

CLEAVE_INLINE void ExactRows::add(const double* row, index_t n) { add_row<false>(row, row, n); }
CLEAVE_INLINE void ExactRows::add(const float* row, index_t n) { add_row<false>(row, row, n); }
CLEAVE_INLINE void ExactRows::add_products(const double* a, const double* b, index_t n) {
  add_row<true>(a, b, n);
}
CLEAVE_INLINE void ExactRows::add_products(const float* a, const float* b, index_t n) {
  add_row<true>(a, b, n);
}

}  // namespace cleave::inline v0::kernels
