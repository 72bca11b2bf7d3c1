// Elementary functions of rows of floats and doubles, several elements at a time, with libmvec, the
// vector math library of glibc 2.35 and newer on x86-64, if the build found it
// (CLEAVE_HAS_LIBMVEC=1). Elsewhere there are none, and loops call the functions of <cmath>.
//
// The instruction set is chosen at run time, whatever the program was compiled for: AVX-512, AVX2
// with FMA, or SSE2. The result for an element depends on the processor, but not on the element's
// position in an array. Errors are at most 4 units in the last place (8 for composed functions, 32
// for their derivatives), if the result is a normal number; infinities and NaNs are those of
// <cmath>.
#pragma once

#include <type_traits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

/// A function that is applied to rows.
enum class RowFunctionId {
  exp,
  log,
  sqrt,
  tanh,
  sigmoid,
  erf,
  gelu,
  gelu_tanh,
  silu,
  sin,
  cos,
  gelu_slope,
  gelu_tanh_slope,
  silu_slope,  // derivatives
};

#if defined(CLEAVE_HAS_LIBMVEC) && CLEAVE_HAS_LIBMVEC

/// Whether rows of T are computed several elements at a time.
template <class T>
inline constexpr bool has_row_functions = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Instruction sets, by ascending vector size.
enum class VectorLevel { sse2, avx2, avx512 };

/// The widest level that the processor and the operating system support.
CLEAVE_INLINE VectorLevel widest_level();

/// y[i] = f(x[i]); y may be x.
CLEAVE_INLINE void apply_to_row(RowFunctionId f, const float* x, float* y, index_t n,
                                VectorLevel level = widest_level());
CLEAVE_INLINE void apply_to_row(RowFunctionId f, const double* x, double* y, index_t n,
                                VectorLevel level = widest_level());

#else

template <class T>
inline constexpr bool has_row_functions = false;

#endif

}  // namespace cleave::inline v0::kernels

#if !CLEAVE_COMPILED
#include <cleave/kernels/host/vector_math_body.hpp>
#endif
