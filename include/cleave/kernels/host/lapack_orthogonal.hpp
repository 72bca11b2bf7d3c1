// Orthogonal factorisations by LAPACK: QR factors, least squares, eigenvalues, singular values.
//
// Matrices are dense, one column after the other, with extents above 0. The functions are declared
// under names of their own, as in lapack.hpp.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::kernels::detail {

/// LAPACK's functions for an element type.
template <class T>
struct LapackOrthogonal;

#if CLEAVE_HAS_LAPACK
#define CLEAVE_LAPACK(letter, T, orgqr)                                                           \
  extern "C" {                                                                                    \
  void cleave_##letter##geqrf(const int*, const int*, T*, const int*, T*, T*, const int*,         \
                              int*) __asm__(#letter "geqrf_");                                    \
  void cleave_##letter##orgqr(const int*, const int*, const int*, T*, const int*, const T*, T*,   \
                              const int*, int*) __asm__(#letter #orgqr "_");                      \
  void cleave_##letter##gels(const char*, const int*, const int*, const int*, T*, const int*, T*, \
                             const int*, T*, const int*, int*,                                    \
                             std::size_t) __asm__(#letter "gels_");                               \
  }
#define CLEAVE_LAPACK_REAL(letter, T)                                                       \
  CLEAVE_LAPACK(letter, T, orgqr)                                                           \
  extern "C" {                                                                              \
  void cleave_##letter##syevd(const char*, const char*, const int*, T*, const int*, T*, T*, \
                              const int*, int*, const int*, int*, std::size_t,              \
                              std::size_t) __asm__(#letter "syevd_");                       \
  void cleave_##letter##gesdd(const char*, const int*, const int*, T*, const int*, T*, T*,  \
                              const int*, T*, const int*, T*, const int*, int*, int*,       \
                              std::size_t) __asm__(#letter "gesdd_");                       \
  }                                                                                         \
  template <>                                                                               \
  struct LapackOrthogonal<T> {                                                              \
    static constexpr auto geqrf = &cleave_##letter##geqrf;                                  \
    static constexpr auto orgqr = &cleave_##letter##orgqr;                                  \
    static constexpr auto gels = &cleave_##letter##gels;                                    \
    static constexpr auto eigh = &cleave_##letter##syevd;                                   \
    static constexpr auto gesdd = &cleave_##letter##gesdd;                                  \
  };
#define CLEAVE_LAPACK_COMPLEX(letter, R)                                                          \
  CLEAVE_LAPACK(letter, std::complex<R>, ungqr)                                                   \
  extern "C" {                                                                                    \
  void cleave_##letter##heevd(const char*, const char*, const int*, std::complex<R>*, const int*, \
                              R*, std::complex<R>*, const int*, R*, const int*, int*, const int*, \
                              int*, std::size_t, std::size_t) __asm__(#letter "heevd_");          \
  void cleave_##letter##gesdd(const char*, const int*, const int*, std::complex<R>*, const int*,  \
                              R*, std::complex<R>*, const int*, std::complex<R>*, const int*,     \
                              std::complex<R>*, const int*, R*, int*, int*,                       \
                              std::size_t) __asm__(#letter "gesdd_");                             \
  }                                                                                               \
  template <>                                                                                     \
  struct LapackOrthogonal<std::complex<R>> {                                                      \
    static constexpr auto geqrf = &cleave_##letter##geqrf;                                        \
    static constexpr auto orgqr = &cleave_##letter##ungqr;                                        \
    static constexpr auto gels = &cleave_##letter##gels;                                          \
    static constexpr auto eigh = &cleave_##letter##heevd;                                         \
    static constexpr auto gesdd = &cleave_##letter##gesdd;                                        \
  };
CLEAVE_LAPACK_REAL(s, float)
CLEAVE_LAPACK_REAL(d, double)
CLEAVE_LAPACK_COMPLEX(c, float)
CLEAVE_LAPACK_COMPLEX(z, double)
#undef CLEAVE_LAPACK
#undef CLEAVE_LAPACK_REAL
#undef CLEAVE_LAPACK_COMPLEX
#endif

/// Makes a call whose last arguments are a work array and its length: a first call with the length
/// -1 asks for the length. The array may be longer, from an earlier call.
template <class T, class Call>
void call_with_work(std::vector<T>& work, const Call& call) {
  const int ask = -1;
  T length = 0;
  call(&length, &ask);
  const auto count = std::size_t(std::real(length));
  if (work.size() < count) work.resize(count);
  const int available = int(work.size());
  call(work.data(), &available);
}

}  // namespace cleave::inline v0::kernels::detail

namespace cleave::inline v0::kernels {

/// The arrays that LAPACK computes in, kept from one matrix of a batch to the next.
template <class T>
struct LapackWork {
  std::vector<T> work{};
  std::vector<real_t<T>> real{};  ///< of complex matrices
  std::vector<int> integers{};
};

/// Replaces a [m, n] by its first k = min(m, n) orthonormal columns, and writes the triangle r
/// [k, n], whose diagonal is made real and at least 0: then the factors are unique if the first k
/// columns of a are independent.
template <class T>
void orthonormalize(int m, int n, T* a, T* r, LapackWork<T>& arrays) {
  using Call = detail::LapackOrthogonal<T>;
  const int k = std::min(m, n);
  std::vector<T> scales(static_cast<std::size_t>(k));
  int info = 0;
  detail::call_with_work(arrays.work, [&](T* work, const int* count) {
    Call::geqrf(&m, &n, a, &m, scales.data(), work, count, &info);
  });
  const auto at = [](index_t i, index_t j, index_t rows) { return i + j * rows; };
  std::vector<bool> turned(static_cast<std::size_t>(k));
  for (int i = 0; i < k; ++i) turned[std::size_t(i)] = std::real(a[at(i, i, m)]) < 0;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < k; ++i) {
      const T& from = a[at(i, j, m)];
      r[at(i, j, k)] = i > j ? T(0) : turned[std::size_t(i)] ? -from : from;
    }
  detail::call_with_work(arrays.work, [&](T* work, const int* count) {
    Call::orgqr(&m, &k, &k, a, &m, scales.data(), work, count, &info);
  });
  for (int j = 0; j < k; ++j)
    if (turned[std::size_t(j)])
      for (int i = 0; i < m; ++i) a[at(i, j, m)] = -a[at(i, j, m)];
}

/// Replaces the first n rows of b [max(m, n), sides] by the x of least norm with least |a x - b|, a
/// [m, n] by its factors.
/// @return 0, or the number, from 1 on, of the diagonal element that is 0: a lacks full rank
template <class T>
int least_squares_in_place(int m, int n, int sides, T* a, T* b, LapackWork<T>& arrays) {
  int info = 0;
  const int rows = std::max(m, n);
  detail::call_with_work(arrays.work, [&](T* work, const int* count) {
    detail::LapackOrthogonal<T>::gels("N", &m, &n, &sides, a, &m, b, &rows, work, count, &info, 1);
  });
  return info;
}

/// Replaces a Hermitian matrix [n, n], of which the lower triangle is read, by its eigenvectors,
/// one per column, and writes its eigenvalues, ascending.
/// @return 0, or how many eigenvalues have not converged
template <class T>
int eigenvectors_in_place(int n, T* a, real_t<T>* values, LapackWork<T>& arrays) {
  using Call = detail::LapackOrthogonal<T>;
  int info = 0;
  arrays.integers.resize(std::size_t(3 + 5 * n));
  const int integers = int(arrays.integers.size());
  if constexpr (is_complex<T>)
    arrays.real.resize(1 + 5 * std::size_t(n) + 2 * std::size_t(n) * std::size_t(n));
  detail::call_with_work(arrays.work, [&](T* work, const int* count) {
    if constexpr (is_complex<T>) {
      const int reals = int(arrays.real.size());
      Call::eigh("V", "L", &n, a, &n, values, work, count, arrays.real.data(), &reals,
                 arrays.integers.data(), &integers, &info, 1, 1);
    } else {
      Call::eigh("V", "L", &n, a, &n, values, work, count, arrays.integers.data(), &integers, &info,
                 1, 1);
    }
  });
  return info;
}

/// Writes the first k = min(m, n) singular values of a [m, n], descending, and the vectors, u
/// [m, k] and vh [k, n]; overwrites a.
/// @return 0, or a number above it if the iteration has not converged
template <class T>
int singular_values(int m, int n, T* a, T* u, real_t<T>* values, T* vh, LapackWork<T>& arrays) {
  using Call = detail::LapackOrthogonal<T>;
  int info = 0;
  const int k = std::min(m, n), longer = std::max(m, n);
  arrays.integers.resize(8 * std::size_t(k));
  if constexpr (is_complex<T>)
    arrays.real.resize(std::size_t(k) * std::size_t(std::max(5 * k + 7, 2 * longer + 2 * k + 1)));
  detail::call_with_work(arrays.work, [&](T* work, const int* count) {
    if constexpr (is_complex<T>)
      Call::gesdd("S", &m, &n, a, &m, values, u, &m, vh, &k, work, count, arrays.real.data(),
                  arrays.integers.data(), &info, 1);
    else
      Call::gesdd("S", &m, &n, a, &m, values, u, &m, vh, &k, work, count, arrays.integers.data(),
                  &info, 1);
  });
  return info;
}

}  // namespace cleave::inline v0::kernels
