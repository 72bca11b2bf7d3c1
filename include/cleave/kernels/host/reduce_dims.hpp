// Sums, products, maxima and minima over some dimensions of an array.
//
// The order of the operations depends on extents and strides alone: same bits in every run. Sums
// are taken in blocks (pairwise along a row, block by block across rows), so that rounding errors
// grow with the number of blocks rather than of elements; 16-bit floats are accumulated in float.
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/arithmetic.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::kernels {

namespace detail {

/// Reduces a row. Long rows are halved where that keeps rounding errors small, short ones run
/// through independent lanes.
template <class Op, class A, class T>
A reduce_row(const T* row, index_t n, index_t step) {
  constexpr index_t lanes = 16, block = 1024;
  constexpr bool rounds =
      !std::is_integral_v<A> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>);
  if (rounds && n > block) {
    const index_t half = n / 2 / lanes * lanes;
    return Fold<Op>::combine(reduce_row<Op, A>(row, half, step),
                             reduce_row<Op, A>(row + half * step, n - half, step));
  }
  A result = Fold<Op>::template identity<A>();
  index_t i = 0;
  if (step == 1 && n >= 2 * lanes) {
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

/// One result after the other.
template <class Op, class T, class R, class Finish>
void reduce_along(const T* in, ReduceLoops loops, R* out, const Finish& finish) {
  using A = accumulator_t<R>;
  const auto row = loops.reduced.pop();
  loops.kept.each([&](index_t start) {
    A result = Fold<Op>::template identity<A>();
    loops.reduced.each([&](index_t offset) {
      result =
          Fold<Op>::combine(result, reduce_row<Op, A>(in + start + offset, row.extent, row.stride));
    });
    *out++ = R(finish(result));
  });
}

/// A row of results at once: elements of a row are next to each other in the input too.
template <class Op, class T, class R, class Finish>
void reduce_across(const T* in, ReduceLoops loops, R* out, const Finish& finish) {
  using A = accumulator_t<R>;
  constexpr index_t width = 256, block = 512;
  const auto row = loops.kept.pop();
  A sum[width], part[width];
  loops.kept.each([&](index_t start) {
    for (index_t first = 0; first < row.extent; first += width, out += width) {
      const index_t n = row.extent - first < width ? row.extent - first : width;
      const T* from = in + start + first * row.stride;
      for (index_t j = 0; j < n; ++j) sum[j] = part[j] = Fold<Op>::template identity<A>();
      index_t rows = 0;
      const auto flush = [&] {
        for (index_t j = 0; j < n; ++j) {
          sum[j] = Fold<Op>::combine(sum[j], part[j]);
          part[j] = Fold<Op>::template identity<A>();
        }
      };
      loops.reduced.each([&](index_t offset) {
        const T* at = from + offset;
        if (row.stride == 1) {
          for (index_t j = 0; j < n; ++j) part[j] = Fold<Op>::combine(part[j], A(at[j]));
        } else {
          for (index_t j = 0; j < n; ++j)
            part[j] = Fold<Op>::combine(part[j], A(at[j * row.stride]));
        }
        if (++rows % block == 0) flush();
      });
      flush();
      for (index_t j = 0; j < n; ++j) out[j] = R(finish(sum[j]));
    }
    out -= (row.extent + width - 1) / width * width - row.extent;
  });
}

}  // namespace detail

/// Reduces the dimensions of the mask.
///
/// @tparam Op  Sum, Product, Max or Min
/// @param in   any extents and strides
/// @param mask bit d: dimension d disappears
/// @param out  the remaining dimensions in their order, row-major without gaps; identity elements
///             where there is nothing to reduce
/// @param finish  applied to each result before it is rounded to R
template <class Op, class T, class R, class Finish = Same>
void reduce_dims(On<Host>, const Strided<const T>& in, unsigned mask, const Strided<R>& out,
                 const Finish& finish = {}) {
  const index_t results = out.extents.product();
  if (results == 0) return;
  if (in.extents.product() == 0) {
    const R identity = R(finish(Fold<Op>::template identity<accumulator_t<R>>()));
    for (index_t i = 0; i < results; ++i) out.data[i] = identity;
    return;
  }
  const detail::ReduceLoops loops(in.extents, in.strides, mask);
  if (loops.along()) detail::reduce_along<Op>(in.data, loops, out.data, finish);
  else detail::reduce_across<Op>(in.data, loops, out.data, finish);
}

}  // namespace cleave::kernels
