// The passes over a block of an exact sum, compiled for the vectors that the processor has.
#pragma once

#include <cleave/kernels/host/exact_block_products.hpp>
#include <cleave/kernels/host/exact_block_sums.hpp>

namespace cleave::kernels::detail {

/// The passes over a block, for the vectors that the processor has.
struct BlockPasses {
  void (*split)(const double* x, index_t n, int exponent, BlockSum& sum);
  bool (*sum)(const float* x, index_t n, int& highest, double& sum);
  void (*products[3])(const double* a, const double* b, index_t n, int exponent,
                      ProductSum& sum);  ///< at three places, at four, and narrow
  void (*multiply)(const float* a, const float* b, index_t n, double* products);
};

template <int Bytes>
struct AnyProcessor {
  static void split(const double* x, index_t n, int exponent, BlockSum& sum) {
    split_block<Bytes>(x, n, exponent, sum);
  }
  static bool sum(const float* x, index_t n, int& highest, double& sum) {
    return sum_block<Bytes>(x, n, highest, sum);
  }
  template <int Places>
  static void products(const double* a, const double* b, index_t n, int exponent,
                       ProductSum& sum) {
    split_products<Bytes, Places>(a, b, n, exponent, sum);
  }
  static void narrow_products(const double* a, const double* b, index_t n, int exponent,
                              ProductSum& sum) {
    split_narrow_products<Bytes>(a, b, n, exponent, sum);
  }
  static void multiply(const float* a, const float* b, index_t n, double* products) {
    detail::multiply<Bytes>(a, b, n, products);
  }
  static constexpr BlockPasses passes{
      &split, &sum, {&products<3>, &products<4>, &narrow_products}, &multiply};
};

#if CLEAVE_EXACT_AVX2
struct WithAvx2 {
  [[gnu::target("avx2,fma")]] static void split(const double* x, index_t n, int exponent,
                                                BlockSum& sum) {
    split_block<32>(x, n, exponent, sum);
  }
  [[gnu::target("avx2,fma")]] static bool sum(const float* x, index_t n, int& highest,
                                             double& sum) {
    return sum_block<32>(x, n, highest, sum);
  }
  template <int Places>
  [[gnu::target("avx2,fma")]] static void products(const double* a, const double* b, index_t n,
                                                   int exponent, ProductSum& sum) {
    split_products<32, Places>(a, b, n, exponent, sum);
  }
  [[gnu::target("avx2,fma")]] static void narrow_products(const double* a, const double* b,
                                                          index_t n, int exponent,
                                                          ProductSum& sum) {
    split_narrow_products<32>(a, b, n, exponent, sum);
  }
  [[gnu::target("avx2,fma")]] static void multiply(const float* a, const float* b, index_t n,
                                                   double* products) {
    detail::multiply<32>(a, b, n, products);
  }
  static constexpr BlockPasses passes{
      &split, &sum, {&products<3>, &products<4>, &narrow_products}, &multiply};
};
#endif

inline const BlockPasses& block_passes() {
#if CLEAVE_EXACT_AVX2
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (wide) return WithAvx2::passes;
#endif
  return AnyProcessor<16>::passes;
}

}  // namespace cleave::kernels::detail
