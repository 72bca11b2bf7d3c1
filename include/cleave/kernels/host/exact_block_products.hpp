// Sums a block of products without rounding: each product and its rounding error are split as the
// numbers of a block are. @see exact_block_sums.hpp
#pragma once

#include <cstdint>
#include <cstring>

#include <cleave/kernels/host/exact_block_sums.hpp>

namespace cleave::kernels::detail {

/// The rounding error of a product below 2^least_product may be too small for a double.
inline constexpr int least_product = -960;

/// The result of a pass over a block of products: `parts`, split at several places, are its sum.
struct ProductSum {
  double parts[4];
  double largest, least;  ///< magnitudes; NaNs are ignored
  bool complete = false;  ///< whether the sum is exact, unless nonzero factors have a tiny product
};

/// Splits products and their rounding errors as split_block does, at `Places` places.
/// @param exponent  2^exponent is above all products
template <int Bytes, int Places>
[[gnu::always_inline]] inline void split_products(const double* a, const double* b, index_t n,
                                                  int exponent, ProductSum& sum) {
  using W = Wide<Bytes>;
  using Vector = typename W::Doubles;
  using Mask = typename W::Mask;
  constexpr int vectors = 2;
  double first[Places];
  Vector sums[vectors][Places], most{}, least = power_of_two(1023) - Vector{};
  Mask left{};
  for (int k = 0; k < Places; ++k) {
    first[k] = 1.5 * power_of_two(exponent + 10 - 43 * k);
    for (int q = 0; q < vectors; ++q) sums[q][k] = first[k] - Vector{};
  }
  for (index_t i = 0; i < n; i += vectors * W::lanes) {
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) {
      Vector x, y, error;
      W::load(a + i + q * W::lanes, x);
      W::load(b + i + q * W::lanes, y);
      Vector product = x * y;
      W::product_error(x, y, product, error);
      const Vector magnitude = Vector(Mask(product) & 0x7fffffffffffffff);
      most = magnitude > most ? magnitude : most;
      least = magnitude < least ? magnitude : least;
      split_off(sums[q][0], product);
      split_last(sums[q][1], product, left);
      for (int k = 1; k < Places - 1; ++k) split_off(sums[q][k], error);
      split_last(sums[q][Places - 1], error, left);
    }
  }
  for (double& part : sum.parts) part = 0;
  for (int k = 0; k < Places; ++k) {
    const Vector part = (sums[0][k] - first[k]) + (sums[1][k] - first[k]);
    sum.parts[k] = across<double>(part, add_two);
  }
  sum.largest = across<double>(most, larger_number);
  sum.least = across<double>(least, smaller_number);
  sum.complete = across<std::uint64_t>(left, any_bits) << 1 == 0;
}

/// Products are narrow if all lie within this many binary digits below a power of two.
inline constexpr int narrow_range = 33;

/// As split_products, for products in a narrow range: the remainders of products and errors are
/// added without rounding and need no check. A product of 0 is outside every such range.
template <int Bytes>
[[gnu::always_inline]] inline void split_narrow_products(const double* a, const double* b,
                                                         index_t n, int exponent, ProductSum& sum) {
  using W = Wide<Bytes>;
  using Vector = typename W::Doubles;
  using Mask = typename W::Mask;
  constexpr int vectors = 2;
  const double first = 1.5 * power_of_two(exponent + 10),
               second = 1.5 * power_of_two(exponent - 43);
  Vector high[vectors], low[vectors] = {}, errors[vectors], rest[vectors] = {}, most{},
                        least = power_of_two(1023) - Vector{};
  for (int q = 0; q < vectors; ++q) high[q] = first - Vector{}, errors[q] = second - Vector{};
  for (index_t i = 0; i < n; i += vectors * W::lanes) {
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) {
      Vector x, y, error;
      W::load(a + i + q * W::lanes, x);
      W::load(b + i + q * W::lanes, y);
      Vector product = x * y;
      W::product_error(x, y, product, error);
      const Vector magnitude = Vector(Mask(product) & 0x7fffffffffffffff);
      most = magnitude > most ? magnitude : most;
      least = magnitude < least ? magnitude : least;
      split_off(high[q], product);
      low[q] += product;
      split_off(errors[q], error);
      rest[q] += error;
    }
  }
  const Vector all_high = (high[0] - first) + (high[1] - first);
  const Vector all_errors = (errors[0] - second) + (errors[1] - second);
  const Vector all_low = low[0] + low[1], all_rest = rest[0] + rest[1];
  sum = {{across<double>(all_high, add_two), across<double>(all_low, add_two),
          across<double>(all_errors, add_two), across<double>(all_rest, add_two)},
         across<double>(most, larger_number),
         across<double>(least, smaller_number)};
  sum.complete = sum.least >= power_of_two(exponent - narrow_range);
}

/// Whether a product of nonzero numbers may have lost bits, or underflowed to 0.
inline bool any_vanishes(const double* a, const double* b, index_t n) {
  bool any = false;
  for (index_t i = 0; i < n; ++i)
    any |= int(__builtin_fabs(a[i] * b[i]) < power_of_two(least_product)) & int(a[i] != 0) &
           int(b[i] != 0);
  return any;
}

/// products + errors = a · b, where the product is neither tiny nor infinite.
inline void multiply_exactly(const double* a, const double* b, index_t n, double* products,
                             double* errors) {
  for (index_t i = 0; i < n; ++i) {
    products[i] = a[i] * b[i];
    errors[i] = __builtin_fma(a[i], b[i], -products[i]);
  }
}

/// Products of floats, which are exact in double.
template <int Bytes>
[[gnu::always_inline]] inline void multiply(const float* a, const float* b, index_t n,
                                            double* products) {
  using W = Wide<Bytes>;
  for (index_t i = 0; i < n; i += W::lanes) {
    typename W::Doubles x, y;
    W::widen(a + i, x);
    W::widen(b + i, y);
    const typename W::Doubles product = x * y;
    std::memcpy(products + i, &product, sizeof(product));
  }
}

}  // namespace cleave::kernels::detail
