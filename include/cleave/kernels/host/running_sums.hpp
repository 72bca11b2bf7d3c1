// Running sums along a dimension.
//
// Every line is summed in order: bitwise identical results however many lines there are. Floats of
// up to 32 bits are accumulated in a wider type.
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

/// The type in which running sums with results R are accumulated.
template <class R>
using running_t = std::conditional_t<std::is_same_v<R, float>, double, accumulator_t<R>>;

namespace detail {

/// The innermost dimension other than `dim`; -1 if there is none.
inline int innermost_other(int dims, int dim) { return dim == dims - 1 ? dims - 2 : dims - 1; }

}  // namespace detail

/// out[.., i, ..] = sum of in[.., k, ..] over k <= i, or over k >= i if `reversed`.
///
/// @param in   any extents and strides
/// @param out  the same extents
template <class T, class R>
void running_sums(On<Host>, const Strided<const T>& in, int dim, bool reversed,
                  const Strided<R>& out) {
  constexpr index_t most = 256;
  using A = running_t<R>;
  if (in.extents.product() == 0) return;
  const index_t n = in.extents[dim];
  const int inner = detail::innermost_other(in.extents.dims, dim);
  const index_t lines = inner < 0 ? 1 : in.extents[inner];
  const index_t in_next = inner < 0 ? 0 : in.strides[inner],
                out_next = inner < 0 ? 0 : out.strides[inner];
  // contiguous lines: only as many at a time as hide the latency of additions
  const index_t width = in.strides[dim] < in_next ? 4 : most;
  const index_t in_step = reversed ? -in.strides[dim] : in.strides[dim];
  const index_t out_step = reversed ? -out.strides[dim] : out.strides[dim];
  const auto visit = [&](index_t in_offset, index_t out_offset) {
    const T* from = in.data + in_offset;
    R* to = out.data + out_offset;
    if (reversed) from += (n - 1) * in.strides[dim], to += (n - 1) * out.strides[dim];
    for (index_t first = 0; first < lines; first += width) {
      const index_t count = lines - first < width ? lines - first : width;
      A sum[most] = {};
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < count; ++j) {
          sum[j] = plus(sum[j], A(from[i * in_step + (first + j) * in_next]));
          to[i * out_step + (first + j) * out_next] = R(sum[j]);
        }
    }
  };
  const unsigned row = 1u << dim | (inner < 0 ? 0u : 1u << inner);
  detail::loops_besides(row, in.extents, in.strides, out.strides).each(visit);
}

}  // namespace cleave::inline v0::kernels
