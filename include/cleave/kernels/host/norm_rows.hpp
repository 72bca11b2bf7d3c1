// Normalises rows along the last dimension to mean 0 and variance 1 (layer norm), or to mean square
// 1 (RMS norm), each while it is in cache.
//
// Sums are computed in blocks, whose sums are added in double: bitwise identical in every run.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// The sum of f(i) for i < n.
template <class T, class F>
double sum_over(index_t n, const F& f) {
  constexpr index_t block = 512, lanes = 64 / index_t(sizeof(T));
  double total = 0;
  for (index_t first = 0; first < n; first += block) {
    const index_t end = std::min(first + block, n);
    T sums[lanes] = {};
    index_t i = first;
    for (; i + lanes <= end; i += lanes)
      for (index_t j = 0; j < lanes; ++j) sums[j] += f(i + j);
    for (; i < end; ++i) sums[0] += f(i);
    for (const T sum : sums) total += double(sum);
  }
  return total;
}

/// The normalisation of a row: (x - center) · scale.
template <class T>
struct RowMeasure {
  T center = T(0), scale = T(1);

  /// @tparam Centers  by mean and variance, else by the mean square
  template <bool Centers>
  static RowMeasure of(const T* x, index_t n, double epsilon) {
    RowMeasure by;
    if constexpr (Centers)
      by.center = T(sum_over<T>(n, [x](index_t i) { return x[i]; }) / double(n));
    const double squares = sum_over<T>(n, [x, center = by.center](index_t i) {
      const T deviation = x[i] - center;
      return deviation * deviation;
    });
    by.scale = T(1 / std::sqrt(squares / double(n) + epsilon));
    return by;
  }
  T operator()(T x) const { return (x - center) * scale; }
};

template <class T>
T weighted(T value) {
  return value;
}
template <class T>
T weighted(T value, T weight) {
  return value * weight;
}
template <class T>
T weighted(T value, T weight, T bias) {
  return value * weight + bias;
}

/// A contiguous row that applies to all rows of an array.
template <class T>
struct CommonRow {
  std::shared_ptr<void> memory{};
  const T* data = nullptr;

  explicit CommonRow(const Strided<const T>& row)
      : data(with_dense_rows(On<Host>{}, row, memory).data) {}
};

}  // namespace detail

/// y = the normalised rows of x, times weight and plus bias, if given.
///
/// @tparam Centers  rows of mean 0 and variance 1, else of mean square 1
/// @param epsilon   added to the variance, or to the mean square
/// @param y         row-major and contiguous
/// @cost            a copy of x, if its rows are not contiguous
template <bool Centers, class T, class... Affine>
void norm_rows(On<Host>, std::bool_constant<Centers>, double epsilon, const Strided<T>& y,
               const Strided<const T>& x, const Affine&... weight_and_bias) {
  if (x.extents.product() == 0) return;
  const int last = x.extents.dims - 1;
  const index_t n = x.extents[last];
  std::shared_ptr<void> memory;
  const Strided<const T> from = with_dense_rows(On<Host>{}, x, memory);
  const auto write_rows = [&](const auto&... affine) {
    detail::loops_besides(1u << last, x.extents, from.strides, y.strides)
        .each([&](index_t in_offset, index_t out_offset) {
          const T* const in = from.data + in_offset;
          T* const out = y.data + out_offset;
          const auto by = detail::RowMeasure<T>::template of<Centers>(in, n, epsilon);
          for (index_t i = 0; i < n; ++i) out[i] = detail::weighted(by(in[i]), affine.data[i]...);
        });
  };
  write_rows(detail::CommonRow<T>(weight_and_bias)...);
}

/// dx = the gradient of x, given the gradient g of norm_rows(x).
///
/// With h = g · weight and z the normalised row, dx = (h - mean(h) - z · mean(h · z)) · scale;
/// without mean(h) if rows are not centered.
///
/// @param weight  the weight passed to norm_rows, if any
template <bool Centers, class T, class... Weight>
void norm_slopes(On<Host>, std::bool_constant<Centers>, double epsilon, const Strided<T>& dx,
                 const Strided<const T>& g, const Strided<const T>& x, const Weight&... weight) {
  if (x.extents.product() == 0) return;
  const int last = x.extents.dims - 1;
  const index_t n = x.extents[last];
  std::shared_ptr<void> memory, g_memory;
  const Strided<const T> from = with_dense_rows(On<Host>{}, x, memory);
  const Strided<const T> slopes = with_dense_rows(On<Host>{}, g, g_memory);
  const auto write_rows = [&](const auto&... factor) {
    detail::loops_besides(1u << last, x.extents, from.strides, slopes.strides, dx.strides)
        .each([&](index_t x_offset, index_t g_offset, index_t out_offset) {
          const T* const in = from.data + x_offset;
          const T* const slope = slopes.data + g_offset;
          T* const out = dx.data + out_offset;
          const auto by = detail::RowMeasure<T>::template of<Centers>(in, n, epsilon);
          const auto h = [&](index_t i) { return (slope[i] * ... * factor.data[i]); };
          const auto mean = [&](const auto& f) { return T(detail::sum_over<T>(n, f) / double(n)); };
          const T along = mean([&](index_t i) { return h(i) * by(in[i]); });
          T constant = T(0);
          if constexpr (Centers) constant = mean(h);
          for (index_t i = 0; i < n; ++i) out[i] = (h(i) - constant - by(in[i]) * along) * by.scale;
        });
  };
  write_rows(detail::CommonRow<T>(weight)...);
}

}  // namespace cleave::inline v0::kernels
