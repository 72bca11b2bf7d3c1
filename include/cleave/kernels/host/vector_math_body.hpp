// The row functions, compiled for each vector instruction set. @see vector_math.hpp
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <cleave/kernels/host/vector_math.hpp>

#if defined(CLEAVE_HAS_LIBMVEC) && CLEAVE_HAS_LIBMVEC

#define CLEAVE_LEVEL sse2
#define CLEAVE_LEVEL_TARGET "sse2"
#define CLEAVE_LEVEL_BYTES 16
#define CLEAVE_LEVEL_SQRT "sqrt"
#define CLEAVE_LEVEL_FLOATS(name) _ZGVbN4v_##name##f
#define CLEAVE_LEVEL_DOUBLES(name) _ZGVbN2v_##name
#include <cleave/kernels/host/vector_level.inc>

#define CLEAVE_LEVEL avx2
#define CLEAVE_LEVEL_TARGET "avx2,fma"
#define CLEAVE_LEVEL_BYTES 32
#define CLEAVE_LEVEL_SQRT "vsqrt"
#define CLEAVE_LEVEL_FLOATS(name) _ZGVdN8v_##name##f
#define CLEAVE_LEVEL_DOUBLES(name) _ZGVdN4v_##name
#include <cleave/kernels/host/vector_level.inc>

#define CLEAVE_LEVEL avx512
#define CLEAVE_LEVEL_TARGET "avx512f,avx512dq"
#define CLEAVE_LEVEL_BYTES 64
#define CLEAVE_LEVEL_SQRT "vsqrt"
#define CLEAVE_LEVEL_FLOATS(name) _ZGVeN16v_##name##f
#define CLEAVE_LEVEL_DOUBLES(name) _ZGVeN8v_##name
#include <cleave/kernels/host/vector_level.inc>

namespace cleave::inline v0::kernels {

namespace detail {

template <class T>
void apply_at_level(RowFunctionId f, const T* x, T* y, index_t n, VectorLevel level) {
  switch (level) {
    case VectorLevel::sse2: return sse2::apply(f, x, y, n);
    case VectorLevel::avx2: return avx2::apply(f, x, y, n);
    case VectorLevel::avx512: return avx512::apply(f, x, y, n);
  }
}

}  // namespace detail

CLEAVE_INLINE VectorLevel widest_level() {
  static const VectorLevel widest = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
      return VectorLevel::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return VectorLevel::avx2;
    return VectorLevel::sse2;
  }();
  return widest;
}

CLEAVE_INLINE void apply_to_row(RowFunctionId f, const float* x, float* y, index_t n,
                                VectorLevel level) {
  detail::apply_at_level(f, x, y, n, level);
}
CLEAVE_INLINE void apply_to_row(RowFunctionId f, const double* x, double* y, index_t n,
                                VectorLevel level) {
  detail::apply_at_level(f, x, y, n, level);
}

}  // namespace cleave::inline v0::kernels

#endif
