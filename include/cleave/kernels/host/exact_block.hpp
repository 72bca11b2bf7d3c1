// The passes over a block of an exact sum, compiled for several vector instruction sets.
#pragma once

#include <cleave/kernels/host/exact_block_products.hpp>
#include <cleave/kernels/host/exact_block_sums.hpp>

namespace cleave::kernels::detail {

/// The passes over a block, for one instruction set.
struct BlockPasses {
  void (*split)(const double* x, index_t n, int exponent, BlockSum& sum);
  bool (*sum)(const float* x, index_t n, int& highest, double& sum);
  void (*products[3])(const double* a, const double* b, index_t n, int exponent,
                      ProductSum& sum);  ///< at three places, at four, and of narrow range
  void (*multiply)(const float* a, const float* b, index_t n, double* products);
};

/// The passes with vectors of BYTES bytes, compiled for the instruction set given by ATTRIBUTE.
#define CLEAVE_EXACT_PASSES(NAME, BYTES, ATTRIBUTE)                                               \
  struct NAME {                                                                                   \
    ATTRIBUTE static void split(const double* x, index_t n, int exponent, BlockSum& sum) {        \
      split_block<BYTES>(x, n, exponent, sum);                                                    \
    }                                                                                             \
    ATTRIBUTE static bool sum(const float* x, index_t n, int& highest, double& sum) {             \
      return sum_block<BYTES>(x, n, highest, sum);                                                \
    }                                                                                             \
    template <int Places>                                                                         \
    ATTRIBUTE static void products(const double* a, const double* b, index_t n, int exponent,     \
                                   ProductSum& sum) {                                             \
      split_products<BYTES, Places>(a, b, n, exponent, sum);                                      \
    }                                                                                             \
    ATTRIBUTE static void narrow_products(const double* a, const double* b, index_t n,            \
                                          int exponent, ProductSum& sum) {                        \
      split_narrow_products<BYTES>(a, b, n, exponent, sum);                                       \
    }                                                                                             \
    ATTRIBUTE static void multiply(const float* a, const float* b, index_t n, double* products) { \
      detail::multiply<BYTES>(a, b, n, products);                                                 \
    }                                                                                             \
    static constexpr BlockPasses passes{                                                          \
        &split, &sum, {&products<3>, &products<4>, &narrow_products}, &multiply};                 \
  }

CLEAVE_EXACT_PASSES(AnyProcessor, 16, );
#if CLEAVE_EXACT_AVX
CLEAVE_EXACT_PASSES(WithAvx2, 32, [[gnu::target("avx2,fma")]]);
#if !defined(__CUDACC__)  // whose front end ends with a fault at vectors of 64 bytes
CLEAVE_EXACT_PASSES(WithAvx512, 64, [[gnu::target("avx512f,avx512dq,avx512vl,avx512bw,fma")]]);
#else
using WithAvx512 = WithAvx2;  // bitwise identical results
#endif
#endif
#undef CLEAVE_EXACT_PASSES

#if CLEAVE_EXACT_AVX
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
inline bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

inline const BlockPasses& block_passes() {
#if CLEAVE_EXACT_AVX
  static const BlockPasses& widest = has_avx512() ? WithAvx512::passes
                                     : has_avx2() ? WithAvx2::passes
                                                  : AnyProcessor::passes;
  return widest;
#else
  return AnyProcessor::passes;
#endif
}

}  // namespace cleave::kernels::detail
