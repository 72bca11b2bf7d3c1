// The functions of ScaLAPACK that cleave calls, for each element type, under names of their own: so
// programs may declare ScaLAPACK's as they like.
#pragma once

#include <complex>
#include <cstddef>

#include <cleave/core/config.hpp>

#define CLEAVE_SCALAPACK(letter, T, form_q)                                                        \
  extern "C" {                                                                                     \
  void cleave_p##letter##potrf(const char*, const int*, T*, const int*, const int*, const int*,    \
                               int*, std::size_t) __asm__("p" #letter "potrf_");                   \
  void cleave_p##letter##laset(const char*, const int*, const int*, const T*, const T*, T*,        \
                               const int*, const int*, const int*,                                 \
                               std::size_t) __asm__("p" #letter "laset_");                         \
  void cleave_p##letter##trsm(const char*, const char*, const char*, const char*, const int*,      \
                              const int*, const T*, const T*, const int*, const int*, const int*,  \
                              T*, const int*, const int*,                                          \
                              const int*) __asm__("p" #letter "trsm_");                            \
  void cleave_p##letter##gels(const char*, const int*, const int*, const int*, T*, const int*,     \
                              const int*, const int*, T*, const int*, const int*, const int*, T*,  \
                              const int*, int*, std::size_t) __asm__("p" #letter "gels_");         \
  void cleave_p##letter##getrf(const int*, const int*, T*, const int*, const int*, const int*,     \
                               int*, int*) __asm__("p" #letter "getrf_");                          \
  void cleave_p##letter##getrs(const char*, const int*, const int*, const T*, const int*,          \
                               const int*, const int*, const int*, T*, const int*, const int*,     \
                               const int*, int*, std::size_t) __asm__("p" #letter "getrs_");       \
  void cleave_p##letter##getri(const int*, T*, const int*, const int*, const int*, const int*, T*, \
                               const int*, int*, const int*, int*) __asm__("p" #letter "getri_");  \
  void cleave_p##letter##geqrf(const int*, const int*, T*, const int*, const int*, const int*, T*, \
                               T*, const int*, int*) __asm__("p" #letter "geqrf_");                \
  void cleave_p##letter##form_q(const int*, const int*, const int*, T*, const int*, const int*,    \
                                const int*, const T*, T*, const int*,                              \
                                int*) __asm__("p" #letter #form_q "_");                            \
  }

#define CLEAVE_SCALAPACK_REAL(letter, T)                                                           \
  CLEAVE_SCALAPACK(letter, T, orgqr)                                                               \
  extern "C" void cleave_p##letter##syevd(const char*, const char*, const int*, T*, const int*,    \
                                          const int*, const int*, T*, T*, const int*, const int*,  \
                                          const int*, T*, const int*, int*, const int*, int*,      \
                                          std::size_t, std::size_t) __asm__("p" #letter "syevd_"); \
  extern "C" void cleave_p##letter##gesvd(                                                         \
      const char*, const char*, const int*, const int*, T*, const int*, const int*, const int*,    \
      T*, T*, const int*, const int*, const int*, T*, const int*, const int*, const int*, T*,      \
      const int*, int*, std::size_t, std::size_t) __asm__("p" #letter "gesvd_");                   \
  CLEAVE_SCALAPACK_OF(letter, T, orgqr, syevd)
#define CLEAVE_SCALAPACK_COMPLEX(letter, R)                                                        \
  CLEAVE_SCALAPACK(letter, std::complex<R>, ungqr)                                                 \
  extern "C" void cleave_p##letter##heevd(                                                         \
      const char*, const char*, const int*, std::complex<R>*, const int*, const int*, const int*,  \
      R*, std::complex<R>*, const int*, const int*, const int*, std::complex<R>*, const int*, R*,  \
      const int*, int*, const int*, int*, std::size_t, std::size_t) __asm__("p" #letter "heevd_"); \
  extern "C" void cleave_p##letter##gesvd(                                                         \
      const char*, const char*, const int*, const int*, std::complex<R>*, const int*, const int*,  \
      const int*, R*, std::complex<R>*, const int*, const int*, const int*, std::complex<R>*,      \
      const int*, const int*, const int*, std::complex<R>*, const int*, R*, int*, std::size_t,     \
      std::size_t) __asm__("p" #letter "gesvd_");                                                  \
  CLEAVE_SCALAPACK_OF(letter, std::complex<R>, ungqr, heevd)
#define CLEAVE_SCALAPACK_OF(letter, T, form_q, eigenvectors)      \
  template <>                                                     \
  struct Scalapack<T> {                                           \
    static constexpr auto potrf = &cleave_p##letter##potrf;       \
    static constexpr auto laset = &cleave_p##letter##laset;       \
    static constexpr auto trsm = &cleave_p##letter##trsm;         \
    static constexpr auto gels = &cleave_p##letter##gels;         \
    static constexpr auto gesvd = &cleave_p##letter##gesvd;       \
    static constexpr auto getrf = &cleave_p##letter##getrf;       \
    static constexpr auto getrs = &cleave_p##letter##getrs;       \
    static constexpr auto getri = &cleave_p##letter##getri;       \
    static constexpr auto geqrf = &cleave_p##letter##geqrf;       \
    static constexpr auto orgqr = &cleave_p##letter##form_q;      \
    static constexpr auto eigh = &cleave_p##letter##eigenvectors; \
  };

namespace cleave::inline v0::detail {

/// ScaLAPACK's functions for an element type.
template <class T>
struct Scalapack;
CLEAVE_SCALAPACK_REAL(s, float)
CLEAVE_SCALAPACK_REAL(d, double)
CLEAVE_SCALAPACK_COMPLEX(c, float)
CLEAVE_SCALAPACK_COMPLEX(z, double)

}  // namespace cleave::inline v0::detail

#undef CLEAVE_SCALAPACK
#undef CLEAVE_SCALAPACK_REAL
#undef CLEAVE_SCALAPACK_COMPLEX
#undef CLEAVE_SCALAPACK_OF
