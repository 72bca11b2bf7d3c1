// Sums, products, maxima and minima over some dimensions of an array.
//
// The order of operations depends on extents and strides alone: the same bits in every run. Sums
// are computed in blocks (pairwise along a row, block by block across rows): rounding errors grow
// with the number of blocks, not of elements; 16-bit floats are accumulated in float.
#pragma once

#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/extremes.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// 16-byte vectors, which all processors have; four independent ones hide the latency of additions.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(16)));
  typedef Vector Anywhere __attribute__((aligned(alignof(T)), may_alias));
  static constexpr int vectors = 4;
  static constexpr index_t count = vectors * 16 / index_t(sizeof(T));

  /// Calls f(q, vector) for all whole groups of vectors. @return the number of elements visited
  template <class F>
  static index_t each(const T* row, index_t n, const F& f) {
    index_t i = 0;
    for (; i + count <= n; i += count) {
      CLEAVE_UNROLL
      for (int q = 0; q < vectors; ++q) f(q, reinterpret_cast<const Anywhere*>(row + i)[q]);
    }
    return i;
  }
};

/// Reduces a row. Long rows are halved if the operation rounds (pairwise summation); short ones are
/// accumulated in independent lanes.
template <class Op, class A, class T>
A reduce_row(const T* row, index_t n, index_t step) {
  constexpr index_t lanes = 16, block = 1024;
  if constexpr (chooses_floats<Op, A, T>) {
    T extreme;
    if (extreme_of_numbers<Op>(row, n, step, extreme)) return extreme;
  }
  constexpr bool rounds =
      !std::is_integral_v<A> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>);
  if (rounds && n > block) {
    const index_t half = n / 2 / lanes * lanes;
    const A first = reduce_row<Op, A>(row, half, step);  // in memory order
    return Fold<Op>::combine(first, reduce_row<Op, A>(row + half * step, n - half, step));
  }
  A result = Fold<Op>::template identity<A>();
  index_t i = 0;
  if constexpr (std::is_same_v<Op, Sum> && std::is_same_v<A, T> && std::is_floating_point_v<T>) {
    if (step == 1 && n >= 2 * lanes) {
      using L = Lanes<T>;
      typename L::Vector sums[L::vectors] = {};
      i = L::each(row, n, [&](int q, typename L::Vector values) { sums[q] += values; });
      const typename L::Vector sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
      for (index_t j = 0; j < L::count / L::vectors; ++j)
        result += reinterpret_cast<const T*>(&sum)[j];
    }
  } else if (step == 1 && n >= 2 * lanes) {
    A lane[lanes];
    for (index_t j = 0; j < lanes; ++j) lane[j] = A(row[j]);
    for (i = lanes; i + lanes <= n; i += lanes)
      for (index_t j = 0; j < lanes; ++j) lane[j] = Fold<Op>::combine(lane[j], A(row[i + j]));
    for (index_t width = lanes / 2; width > 0; width /= 2)
      for (index_t j = 0; j < width; ++j) lane[j] = Fold<Op>::combine(lane[j], lane[j + width]);
    result = lane[0];
  }
  for (; i < n; ++i) result = Fold<Op>::combine(result, A(row[i * step]));
  return result;
}

/// Calls one(row) for every row of `n` elements, or take(extreme, index) if the row is reduced
/// together with others.
template <class Op, class A, class T, class Take, class One>
void each_row(const T* in, DimLoops kept, index_t n, index_t step, const Take& take,
              const One& one) {
  if constexpr (chooses_floats<Op, A, T>) {
    if (n < ShortRows<T>::longest) {
      ShortRows<T> together;
      constexpr index_t count = together.count;
      const auto rows = kept.pop();
      return kept.each([&](index_t start) {
        const T* row = in + start;
        for (index_t left = rows.extent; left > 0;) {
          index_t alone = left < count ? left : count;
          left -= alone;
          if (alone == count && together.template reduce<Op>(row, rows.stride, n, step)) {
            for (index_t r = 0; r < count; ++r) take(together.best[r], together.at[r]);
            alone = 0, row += count * rows.stride;
          }
          for (; alone > 0; --alone, row += rows.stride) one(row);
        }
      });
    }
  }
  kept.each([&](index_t start) { one(in + start); });
}

/// Computes one result after another.
template <class Op, class T, class R, class Epilogue>
void reduce_along(const T* in, ReduceLoops loops, R* out, const Epilogue& epilogue) {
  using A = accumulator_t<R>;
  const auto row = loops.reduced.pop();
  const auto take = [&](const A& result, index_t) { *out++ = R(epilogue(result)); };
  const auto each = [&](const T* from) {
    A result = Fold<Op>::template identity<A>();
    loops.reduced.each([&](index_t offset) {
      result = Fold<Op>::combine(result, reduce_row<Op, A>(from + offset, row.extent, row.stride));
    });
    take(result, 0);
  };
  if (loops.reduced.dims == 0)
    return each_row<Op, A>(in, loops.kept, row.extent, row.stride, take, each);
  loops.kept.each([&](index_t start) { each(in + start); });
}

/// Combines four rows into a row of results. @param step  the stride between elements of a row
template <class Op, class A, class T>
void fold_rows(A* __restrict__ part, const T* const (&rows)[4], index_t n, index_t step) {
  using F = Fold<Op>;
  const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  const auto fold = [&](index_t j, index_t at) {
    part[j] = F::combine(
        part[j], F::combine(F::combine(A(a[at]), A(b[at])), F::combine(A(c[at]), A(d[at]))));
  };
  if (step == 1)
    for (index_t j = 0; j < n; ++j) fold(j, j);
  else
    for (index_t j = 0; j < n; ++j) fold(j, j * step);
}
template <class Op, class A, class T>
void fold_row(A* __restrict__ part, const T* row, index_t n, index_t step) {
  if (step == 1)
    for (index_t j = 0; j < n; ++j) part[j] = Fold<Op>::combine(part[j], A(row[j]));
  else
    for (index_t j = 0; j < n; ++j) part[j] = Fold<Op>::combine(part[j], A(row[j * step]));
}

/// Calls four(rows) for four rows at a time, and one(row) for each remaining row.
template <class T, class Four, class One>
void each_four_rows(const T* from, const DimLoops& loops, const Four& four, const One& one) {
  constexpr int together = 4;
  const T* rows[together];
  int held = 0;
  loops.each([&](index_t offset) {
    rows[held++] = from + offset;
    if (held < together) return;
    four(rows);
    held = 0;
  });
  for (int i = 0; i < held; ++i) one(rows[i]);
}

/// The largest number of results that are accumulated at once.
inline constexpr index_t across_width = 512;

/// Folds elements of rows into `bests`, as extreme_of_numbers does.
/// @return whether the sums show that no element is NaN
template <class Op, class T>
bool extremes_of_numbers(T* __restrict__ bests, const T* from, const DimLoops& loops, index_t n,
                         index_t step) {
  constexpr auto better = better_number<Op>;
  T sums[across_width] = {};
  const auto fold = [&](index_t j, const T& a, const T& b, const T& c, const T& d) {
    bests[j] = better(better(better(a, b), better(c, d)), bests[j]);
    sums[j] += (a + b) + (c + d);
  };
  each_four_rows(
      from, loops,
      [&](const T* const(&rows)[4]) {
        const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
        if (step == 1)
          for (index_t j = 0; j < n; ++j) fold(j, a[j], b[j], c[j], d[j]);
        else
          for (index_t j = 0, at = 0; j < n; ++j, at += step) fold(j, a[at], b[at], c[at], d[at]);
      },
      [&](const T* row) {
        for (index_t j = 0; j < n; ++j) {
          bests[j] = better(row[j * step], bests[j]);
          sums[j] += row[j * step];
        }
      });
  bool are_numbers = true;
  for (index_t j = 0; j < n; ++j) are_numbers = are_numbers && !is_nan(sums[j]);
  return are_numbers;
}

/// Computes a row of results at once, from rows of elements.
template <class Op, class T, class R, class Epilogue>
void reduce_across(const T* in, ReduceLoops loops, R* out, const Epilogue& epilogue) {
  using A = accumulator_t<R>;
  constexpr A identity = Fold<Op>::template identity<A>();
  constexpr index_t width = across_width, block = 512;
  const auto row = loops.kept.pop();
  A sum[width], part[width];
  const auto fold = [&](const T* from, index_t n) {
    for (index_t j = 0; j < n; ++j) sum[j] = identity;
    if constexpr (chooses_floats<Op, A, T>) {
      if (extremes_of_numbers<Op>(sum, from, loops.reduced, n, row.stride)) return;
    }
    for (index_t j = 0; j < n; ++j) sum[j] = part[j] = identity;
    index_t folded = 0;
    each_four_rows(
        from, loops.reduced,
        [&](const T* const(&rows)[4]) {
          fold_rows<Op>(part, rows, n, row.stride);
          if ((folded += 4) % block != 0) return;
          for (index_t j = 0; j < n; ++j) {
            sum[j] = Fold<Op>::combine(sum[j], part[j]);
            part[j] = identity;
          }
        },
        [&](const T* rest) { fold_row<Op>(part, rest, n, row.stride); });
    for (index_t j = 0; j < n; ++j) sum[j] = Fold<Op>::combine(sum[j], part[j]);
  };
  loops.kept.each([&](index_t start) {
    for (index_t first = 0; first < row.extent; first += width) {
      const index_t n = row.extent - first < width ? row.extent - first : width;
      fold(in + start + first * row.stride, n);
      for (index_t j = 0; j < n; ++j) *out++ = R(epilogue(sum[j]));
    }
  });
}

}  // namespace detail

/// Reduces the dimensions of the mask.
///
/// @tparam Op  Sum, Product, Max or Min
/// @param in   any extents and strides
/// @param mask bit d: dimension d is reduced
/// @param out  the remaining dimensions in order, row-major and contiguous; identity elements if
///             there is nothing to reduce
/// @param epilogue  applied to each result before it is rounded to R
template <class Op, class T, class R, class Epilogue = Same>
void reduce_dims(On<Host>, const Strided<const T>& in, unsigned mask, const Strided<R>& out,
                 const Epilogue& epilogue = {}) {
  const index_t results = out.extents.product();
  if (results == 0) return;
  if (in.extents.product() == 0) {
    const R identity = R(epilogue(Fold<Op>::template identity<accumulator_t<R>>()));
    for (index_t i = 0; i < results; ++i) out.data[i] = identity;
    return;
  }
  const detail::ReduceLoops loops(in.extents, in.strides, mask);
  if (loops.along()) detail::reduce_along<Op>(in.data, loops, out.data, epilogue);
  else detail::reduce_across<Op>(in.data, loops, out.data, epilogue);
}

#if CLEAVE_COMPILED
extern template void reduce_dims<Sum>(On<Host>, const Strided<const float>&, unsigned,
                                      const Strided<float>&, const Same&);
extern template void reduce_dims<Max>(On<Host>, const Strided<const float>&, unsigned,
                                      const Strided<float>&, const Same&);
extern template void reduce_dims<Min>(On<Host>, const Strided<const float>&, unsigned,
                                      const Strided<float>&, const Same&);
extern template void reduce_dims<Sum>(On<Host>, const Strided<const float>&, unsigned,
                                      const Strided<float>&, const DividedBy<float>&);
extern template void reduce_dims<Sum>(On<Host>, const Strided<const double>&, unsigned,
                                      const Strided<double>&, const Same&);
extern template void reduce_dims<Max>(On<Host>, const Strided<const double>&, unsigned,
                                      const Strided<double>&, const Same&);
extern template void reduce_dims<Min>(On<Host>, const Strided<const double>&, unsigned,
                                      const Strided<double>&, const Same&);
extern template void reduce_dims<Sum>(On<Host>, const Strided<const double>&, unsigned,
                                      const Strided<double>&, const DividedBy<double>&);
#endif

}  // namespace cleave::inline v0::kernels
