// The functions of ScaLAPACK that cleave calls, for each element type, under names of their own: so
// programs may declare ScaLAPACK's as they like.
#pragma once

#include <complex>
#include <cstddef>

#include <cleave/core/config.hpp>

#define CLEAVE_SCALAPACK(letter, T)                                                             \
  extern "C" {                                                                                  \
  void cleave_p##letter##potrf(const char*, const int*, T*, const int*, const int*, const int*, \
                               int*, std::size_t) __asm__("p" #letter "potrf_");                \
  void cleave_p##letter##laset(const char*, const int*, const int*, const T*, const T*, T*,     \
                               const int*, const int*, const int*,                              \
                               std::size_t) __asm__("p" #letter "laset_");                      \
  void cleave_p##letter##getrf(const int*, const int*, T*, const int*, const int*, const int*,  \
                               int*, int*) __asm__("p" #letter "getrf_");                       \
  void cleave_p##letter##getrs(const char*, const int*, const int*, const T*, const int*,       \
                               const int*, const int*, const int*, T*, const int*, const int*,  \
                               const int*, int*, std::size_t) __asm__("p" #letter "getrs_");    \
  }                                                                                             \
  template <>                                                                                   \
  struct Scalapack<T> {                                                                         \
    static constexpr auto potrf = &cleave_p##letter##potrf;                                     \
    static constexpr auto laset = &cleave_p##letter##laset;                                     \
    static constexpr auto getrf = &cleave_p##letter##getrf;                                     \
    static constexpr auto getrs = &cleave_p##letter##getrs;                                     \
  };

namespace cleave::detail {

/// ScaLAPACK's functions for an element type.
template <class T>
struct Scalapack;
CLEAVE_SCALAPACK(s, float)
CLEAVE_SCALAPACK(d, double)
CLEAVE_SCALAPACK(c, std::complex<float>)
CLEAVE_SCALAPACK(z, std::complex<double>)

}  // namespace cleave::detail

#undef CLEAVE_SCALAPACK
