// The vector size of the processor, for kernels that are compiled for several instruction sets
// whatever the target of the program, and chosen at run time.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
/// Whether functions can be compiled for AVX2 and AVX-512.
#define CLEAVE_VECTOR_TARGETS 1
#endif

namespace cleave::inline v0::kernels::detail {

/// In bytes: 64 (AVX-512F), 32 (AVX2 with FMA), or 0 if smaller, or unknown.
inline int widest_vectors() {
#if defined(CLEAVE_VECTOR_TARGETS)
  static const int bytes = __builtin_cpu_supports("avx512f")                                 ? 64
                           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32
                                                                                             : 0;
  return bytes;
#else
  return 0;
#endif
}

}  // namespace cleave::inline v0::kernels::detail
