// The largest and the smallest of floats, without testing each for NaN: if the sum of all elements
// is not NaN, no element is.
//
// Long rows are read with AVX2 where the processor has it (a maximum of 64 bytes takes AVX-512 two
// instructions), and with prefetches, because hardware prefetchers stop at the end of a page.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/widest_vectors.hpp>

namespace cleave::inline v0::kernels::detail {

/// Whether Op selects among floats, which may be NaN.
template <class Op, class A, class T>
inline constexpr bool chooses_floats = (std::is_same_v<Op, Max> || std::is_same_v<Op, Min>) &&
                                       std::is_same_v<A, T> && std::is_floating_point_v<T>;

/// The larger or the smaller of two numbers.
template <class Op>
inline constexpr auto better_number = [](const auto& a, const auto& b) {
  if constexpr (std::is_same_v<Op, Max>) return b < a ? a : b;
  else return a < b ? a : b;
};

/// Folds whole groups of vectors of a contiguous row into `best` and `sum`.
/// @return the number of elements read
template <class Op, class T, int Bytes>
[[gnu::always_inline]] inline index_t extreme_of_vectors(const T* row, index_t n, T& best, T& sum) {
  typedef T Vector __attribute__((vector_size(Bytes)));
  typedef Vector Anywhere __attribute__((aligned(alignof(T)), may_alias));
  constexpr int vectors = 4;  // independent: hides the latency of additions
  constexpr index_t lanes = Bytes / index_t(sizeof(T)), group = vectors * lanes;
  constexpr index_t line = 64 / index_t(sizeof(T)), ahead = 128 * line;
  if (n < 2 * group) return 0;
  Vector bests[vectors], sums[vectors] = {};
  CLEAVE_UNROLL
  for (int q = 0; q < vectors; ++q) bests[q] = best - Vector{};
  index_t i = 0;
  for (; i + group <= n; i += group) {
    CLEAVE_UNROLL
    for (index_t k = 0; k < group; k += line) __builtin_prefetch(row + i + ahead + k);
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) {
      const Vector values = reinterpret_cast<const Anywhere*>(row + i)[q];
      if constexpr (std::is_same_v<Op, Max>) bests[q] = bests[q] < values ? values : bests[q];
      else bests[q] = values < bests[q] ? values : bests[q];
      sums[q] += values;
    }
  }
  for (int q = 0; q < vectors; ++q)
    for (index_t j = 0; j < lanes; ++j) {
      const T candidate = bests[q][j];
      best = better_number<Op>(candidate, best);
      sum += sums[q][j];
    }
  return i;
}

#if defined(CLEAVE_VECTOR_TARGETS)
template <class Op, class T>
[[gnu::target("avx2,fma")]] index_t extreme_of_vectors_256(const T* row, index_t n, T& best,
                                                           T& sum) {
  return extreme_of_vectors<Op, T, 32>(row, n, best, sum);
}
#endif

/// Max or Min of a row.
/// @return whether `extreme` is valid; the sum may also be NaN if no element is (inf - inf)
template <class Op, class T>
bool extreme_of_numbers(const T* row, index_t n, index_t step, T& extreme) {
  T best = Fold<Op>::template identity<T>(), sum = T(0);
  index_t i = 0;
  if (step == 1 && n >= 32) {
#if defined(CLEAVE_VECTOR_TARGETS)
    i = widest_vectors() >= 32 ? extreme_of_vectors_256<Op>(row, n, best, sum)
                               : extreme_of_vectors<Op, T, 16>(row, n, best, sum);
#else
    i = extreme_of_vectors<Op, T, 16>(row, n, best, sum);
#endif
  }
  for (; i < n; ++i) best = better_number<Op>(row[i * step], best), sum += row[i * step];
  extreme = best;
  return !is_nan(sum);
}

/// Rows too short for vectors of their own elements, several at once: one row per lane.
template <class T>
struct ShortRows {
  static constexpr int lanes = 16 / int(sizeof(T)), vectors = 4;
  static constexpr index_t count = vectors * lanes;  ///< rows that are reduced together
  static constexpr index_t longest = 32;
  using Places = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Vector __attribute__((vector_size(16)));
  typedef Places Indices __attribute__((vector_size(16)));

  T best[count];
  Places at[count];  ///< the lowest indices of these values

  /// @param row_step, step  strides between rows, and between the `n` elements of a row
  /// @return whether all elements are numbers: the results are valid (see extreme_of_numbers)
  template <class Op>
  bool reduce(const T* from, index_t row_step, index_t n, index_t step) {
    constexpr index_t line = 64 / index_t(sizeof(T)), ahead = 64 * line;
    if (step == 1 && row_step == n)
      for (index_t k = 0; k < count * n; k += line) __builtin_prefetch(from + ahead + k);
    Vector bests[vectors], sums[vectors] = {};
    Indices places[vectors] = {};
    CLEAVE_UNROLL
    for (int q = 0; q < vectors; ++q) bests[q] = column(from + q * lanes * row_step, row_step);
    for (index_t i = 0; i < n; ++i, from += step) {
      CLEAVE_UNROLL
      for (int q = 0; q < vectors; ++q) {
        const Vector values = column(from + q * lanes * row_step, row_step);
        Indices better;  // nvcc does not select floats by a mask that has a name
        if constexpr (std::is_same_v<Op, Max>) {
          better = Indices(bests[q] < values);
          bests[q] = bests[q] < values ? values : bests[q];
        } else {
          better = Indices(values < bests[q]);
          bests[q] = values < bests[q] ? values : bests[q];
        }
        places[q] = (places[q] & ~better) | ((Places(i) - Indices{}) & better);
        sums[q] += values;
      }
    }
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    T sum = T(0);
    for (int j = 0; j < lanes; ++j) sum += sums[0][j];
    for (index_t r = 0; r < count; ++r)
      best[r] = bests[r / lanes][r % lanes], at[r] = places[r / lanes][r % lanes];
    return !is_nan(sum);
  }

 private:
  /// One element of each of `lanes` rows.
  static Vector column(const T* from, index_t row_step) {
    if constexpr (lanes == 2) return Vector{from[0], from[row_step]};
    else return Vector{from[0], from[row_step], from[2 * row_step], from[3 * row_step]};
  }
};

}  // namespace cleave::inline v0::kernels::detail
