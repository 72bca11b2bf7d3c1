// Factorisations and solutions of dense matrices by LAPACK, for float, double and complex numbers
// of both.
//
// LAPACK reads columns: to it, a dense row-major matrix is its transpose. The functions are
// declared under names of their own, so that programs may declare LAPACK's as they like.
#pragma once

#include <complex>
#include <cstddef>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels::detail {

/// LAPACK's functions for an element type.
template <class T>
struct Lapack;

#if CLEAVE_HAS_LAPACK
#define CLEAVE_LAPACK(letter, T)                                                             \
  extern "C" {                                                                               \
  void cleave_##letter##potrf(const char*, const int*, T*, const int*, int*,                 \
                              std::size_t) __asm__(#letter "potrf_");                        \
  void cleave_##letter##getrf(const int*, const int*, T*, const int*, int*,                  \
                              int*) __asm__(#letter "getrf_");                               \
  void cleave_##letter##getri(const int*, T*, const int*, const int*, T*, const int*,        \
                              int*) __asm__(#letter "getri_");                               \
  void cleave_##letter##getrs(const char*, const int*, const int*, const T*, const int*,     \
                              const int*, T*, const int*, int*,                              \
                              std::size_t) __asm__(#letter "getrs_");                        \
  void cleave_##letter##trtrs(const char*, const char*, const char*, const int*, const int*, \
                              const T*, const int*, T*, const int*, int*, std::size_t,       \
                              std::size_t, std::size_t) __asm__(#letter "trtrs_");           \
  }                                                                                          \
  template <>                                                                                \
  struct Lapack<T> {                                                                         \
    static constexpr auto potrf = &cleave_##letter##potrf;                                   \
    static constexpr auto getrf = &cleave_##letter##getrf;                                   \
    static constexpr auto getri = &cleave_##letter##getri;                                   \
    static constexpr auto getrs = &cleave_##letter##getrs;                                   \
    static constexpr auto trtrs = &cleave_##letter##trtrs;                                   \
  };
CLEAVE_LAPACK(s, float)
CLEAVE_LAPACK(d, double)
CLEAVE_LAPACK(c, std::complex<float>)
CLEAVE_LAPACK(z, std::complex<double>)
#undef CLEAVE_LAPACK
#endif

}  // namespace cleave::inline v0::kernels::detail

namespace cleave::inline v0::kernels {

// Matrices are n x n, n > 0, dense and row-major; right-hand sides are dense, one column after the
// other. Results are LAPACK's INFO: 0, or the number of the row at which it failed, from 1 on.

/// Replaces the lower triangle of a positive definite matrix by its Cholesky factor L. What is
/// above is neither read nor written.
template <class T>
int cholesky_in_place(int n, T* a) {
  int info = 0;
  // rows of the lower triangle are columns of an upper one, U = transpose(L)
  detail::Lapack<T>::potrf("U", &n, a, &n, &info, 1);
  return info;
}

/// Replaces a matrix [m, n] of columns, one after the other, by its factors P L U; a matrix of rows
/// by those of its transpose. @param pivots  [min(m, n)], written
template <class T>
int factorize_in_place(int m, int n, T* a, int* pivots) {
  int info = 0;
  detail::Lapack<T>::getrf(&m, &n, a, &m, pivots, &info);
  return info;
}
template <class T>
int factorize_in_place(int n, T* a, int* pivots) {
  return factorize_in_place(n, n, a, pivots);
}

/// Replaces columns b by the solutions of a x = b. @param factors, pivots  of factorize_in_place
template <class T>
void solve_in_place(int n, int columns, const T* factors, const int* pivots, T* b) {
  int info = 0;
  detail::Lapack<T>::getrs("T", &n, &columns, factors, &n, pivots, b, &n, &info, 1);
}

/// Replaces the factors of factorize_in_place by the inverse of the matrix.
/// @param work  [count], count >= n; faster if it is a multiple of n
template <class T>
int invert_in_place(int n, T* factors, const int* pivots, T* work, int count) {
  int info = 0;
  detail::Lapack<T>::getri(&n, factors, &n, pivots, work, &count, &info);
  return info;
}

/// Replaces columns b by the solutions of a x = b, where a is a triangle.
template <class T>
int solve_triangle_in_place(bool is_upper, int n, int columns, const T* a, T* b) {
  int info = 0;
  detail::Lapack<T>::trtrs(is_upper ? "L" : "U", "T", "N", &n, &columns, a, &n, b, &n, &info, 1, 1,
                           1);
  return info;
}

}  // namespace cleave::inline v0::kernels
