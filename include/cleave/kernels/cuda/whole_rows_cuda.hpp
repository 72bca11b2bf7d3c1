// softmax, log_softmax, layer norm and RMS norm of rows on a GPU, and their gradients: one launch
// each. 16-bit elements are computed in float and rounded once.
#pragma once

#include <array>
#include <cmath>
#include <type_traits>

#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The sum of exp(x - largest) over elements x, the largest of which is known.
template <class A>
struct ExpTotal {
  A largest, sum;

  CLEAVE_HOST_DEVICE static A scale(A from, A to) {
    return from == to ? A(1) : std::exp(from - to);
  }
};

/// The total of elements that have two totals. If all elements are -infinity, the sum is 0.
struct JoinedExpTotals {
  template <class A>
  CLEAVE_HOST_DEVICE ExpTotal<A> operator()(const ExpTotal<A>& a, const ExpTotal<A>& b) const {
    const A most = kernels::larger(a.largest, b.largest);
    return {most, a.sum * ExpTotal<A>::scale(a.largest, most) +
                      b.sum * ExpTotal<A>::scale(b.largest, most)};
  }
};

/// The total of a row of numbers, which is read once (M. Milakov, N. Gimelshein: Online normalizer
/// calculation for softmax. arXiv:1805.02867).
template <class Items>
__device__ auto exp_total(Items& row) {
  using A = typename Items::Item;
  const A least = kernels::lowest<A>();
  ExpTotal<A> total{least, A(0)};
  row.each_chunk([&](auto& chunk) {
    ExpTotal<A> part{least, A(0)};
    chunk.each([&](A x) { part.largest = kernels::larger(part.largest, x); });
    if (part.largest != least) chunk.each([&](A x) { part.sum += std::exp(x - part.largest); });
    total = JoinedExpTotals{}(total, part);
  });
  return row.fold(total, JoinedExpTotals{});
}

/// The rows of x, computed in the accumulator type of their elements.
template <class T>
struct RowsOf {
  using Item = accumulator_t<T>;
  RowArray<const T> x;

  template <int V>
  __device__ Pack<Item, V> load(index_t i, index_t n) const {
    const Pack<T, V> elements = x.template load<V>(i, n);
    Pack<Item, V> items;
    for (int k = 0; k < V; ++k) items.values[k] = Item(elements.values[k]);
    return items;
  }
};

template <bool Logarithm, class T>
struct SoftmaxRow : RowsOf<T> {
  static constexpr int arrays = 2;
  using typename RowsOf<T>::Item;

  RowArray<T> y;

  __device__ void move(const index_t (&offset)[arrays]) {
    this->x.data += offset[0], y.data += offset[1];
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    const ExpTotal<Item> total = exp_total(row);
    if constexpr (Logarithm) {
      const Item shift = std::log(total.sum);
      row.write_each(y, [&](Item a) { return (a - total.largest) - shift; });
    } else {
      row.write_each(y, [&](Item a) { return std::exp(a - total.largest) / total.sum; });
    }
  }
};

/// Two numbers per element of a row: those of two arrays, or two sums.
template <class A>
struct RowPair {
  A a = A(0), b = A(0);

  __device__ friend RowPair operator+(const RowPair& x, const RowPair& y) {
    return {x.a + y.a, x.b + y.b};
  }
};

template <bool Logarithm, class T>
struct SoftmaxSlopeRow {
  static constexpr int arrays = 3;
  using A = accumulator_t<T>;
  using Item = RowPair<A>;  ///< g and y

  RowArray<const T> y, g;
  RowArray<T> dx;

  __device__ void move(const index_t (&offset)[arrays]) {
    y.data += offset[0], g.data += offset[1], dx.data += offset[2];
  }
  template <int V>
  __device__ Pack<Item, V> load(index_t i, index_t n) const {
    const Pack<T, V> slopes = g.template load<V>(i, n), values = y.template load<V>(i, n);
    Pack<Item, V> items;
    for (int k = 0; k < V; ++k) items.values[k] = {A(slopes.values[k]), A(values.values[k])};
    return items;
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    const A total =
        row.template sum<A>([](const Item& at) { return Logarithm ? at.a : at.a * at.b; });
    row.write_each(dx, [&](const Item& at) {
      return Logarithm ? at.a - std::exp(at.b) * total : at.b * (at.a - total);
    });
  }
};

/// The normalisation of a row: (x - center) · scale.
template <class A>
struct RowMeasureOnDevice {
  A center = A(0), scale = A(1);

  /// @param of  the number x of an item
  template <bool Centers, class Items, class F>
  __device__ static RowMeasureOnDevice measure(Items& row, double epsilon, const F& of) {
    using Item = typename Items::Item;
    RowMeasureOnDevice by;
    const A n = A(row.size());
    if constexpr (Centers)
      by.center = row.template sum<A>([&](const Item& at) { return of(at); }) / n;
    const A squares = row.template sum<A>([&](const Item& at) {
      const A deviation = of(at) - by.center;
      return deviation * deviation;
    });
    by.scale = A(1) / std::sqrt(squares / n + A(epsilon));
    return by;
  }
  __device__ A operator()(A x) const { return (x - center) * scale; }
};

/// @tparam Affine  0, 1 if there is a weight, 2 if there is a bias too
template <bool Centers, int Affine, class T>
struct NormRow : RowsOf<T> {
  static constexpr int arrays = 2;
  using typename RowsOf<T>::Item;

  RowArray<T> y;
  RowArray<const T> affine[2];
  double epsilon;

  __device__ void move(const index_t (&offset)[arrays]) {
    this->x.data += offset[0], y.data += offset[1];
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    constexpr int V = Items::width;
    const auto by = RowMeasureOnDevice<Item>::template measure<Centers>(
        row, epsilon, [](const Item& a) { return a; });
    row.write(y, [&](const Pack<Item, V>& items, index_t i) {
      Pack<T, V> results, weight, bias;
      if constexpr (Affine > 0) weight = affine[0].template load<V>(i, row.size());
      if constexpr (Affine > 1) bias = affine[1].template load<V>(i, row.size());
      for (int k = 0; k < V; ++k) {
        Item value = by(items.values[k]);
        if constexpr (Affine > 0) value *= Item(weight.values[k]);
        if constexpr (Affine > 1) value += Item(bias.values[k]);
        results.values[k] = T(value);
      }
      return results;
    });
  }
};

/// dx = (h - mean(h) - z · mean(h · z)) · scale, with h = g · weight and z the normalised row.
template <bool Centers, bool HasWeight, class T>
struct NormSlopeRow {
  static constexpr int arrays = 3;
  using A = accumulator_t<T>;
  using Item = RowPair<A>;  ///< x and h

  RowArray<const T> x, g;
  RowArray<T> dx;
  RowArray<const T> weight;
  double epsilon;

  __device__ void move(const index_t (&offset)[arrays]) {
    x.data += offset[0], g.data += offset[1], dx.data += offset[2];
  }
  template <int V>
  __device__ Pack<Item, V> load(index_t i, index_t n) const {
    const Pack<T, V> values = x.template load<V>(i, n), slopes = g.template load<V>(i, n);
    Pack<T, V> factors;
    if constexpr (HasWeight) factors = weight.template load<V>(i, n);
    Pack<Item, V> items;
    for (int k = 0; k < V; ++k) {
      items.values[k] = {A(values.values[k]), A(slopes.values[k])};
      if constexpr (HasWeight) items.values[k].b *= A(factors.values[k]);
    }
    return items;
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    const auto by = RowMeasureOnDevice<A>::template measure<Centers>(
        row, epsilon, [](const Item& at) { return at.a; });
    const A n = A(row.size());
    const Item sums =
        row.template sum<Item>([&](const Item& at) { return Item{at.b, at.b * by(at.a)}; });
    const A constant = Centers ? sums.a / n : A(0), along = sums.b / n;
    row.write_each(dx,
                   [&](const Item& at) { return (at.b - constant - by(at.a) * along) * by.scale; });
  }
};

}  // namespace cuda::detail

namespace kernels {

/// y = softmax(x) along dimension d, or its logarithm, in the order of the current stream.
///
/// @param x,y   any extents and strides
/// @cost   one launch. x is read once, y written once, if a row has at most 8192 elements (double:
///         4096), or 1024 (512) whose stride is larger than that between rows; of a longer row, the
///         rest is read twice
/// @throws Error if the launch fails
template <bool Logarithm, class T>
void softmax_rows(On<Cuda>, std::bool_constant<Logarithm>, const Strided<const T>& x, int d,
                  const Strided<T>& y) {
  using namespace cuda::detail;
  if (x.extents.product() == 0) return;
  constexpr int width = pack_width<T>();
  const auto rows = loops_over_rows(x.extents, d, std::array{x.strides, y.strides});
  launch_rows<width>(
      Logarithm ? "log_softmax" : "softmax",
      SoftmaxRow<Logarithm, T>{{row_array<width>(x, d, rows, 0)}, row_array<width>(y, d, rows, 1)},
      rows, x.extents[d], x.strides[d]);
}

/// dx = the gradient of softmax_rows' x: y · (g - sum(g · y)), or g - exp(y) · sum(g). Likewise,
/// for rows of half as many elements.
template <bool Logarithm, class T>
void softmax_slopes(On<Cuda>, std::bool_constant<Logarithm>, const Strided<const T>& g,
                    const Strided<const T>& y, int d, const Strided<T>& dx) {
  using namespace cuda::detail;
  if (y.extents.product() == 0) return;
  constexpr int width = pack_width<T>();
  const auto rows = loops_over_rows(y.extents, d, std::array{y.strides, g.strides, dx.strides});
  launch_rows<width>(Logarithm ? "log_softmax" : "softmax",
                     SoftmaxSlopeRow<Logarithm, T>{row_array<width>(y, d, rows, 0),
                                                   row_array<width>(g, d, rows, 1),
                                                   row_array<width>(dx, d, rows, 2)},
                     rows, y.extents[d], y.strides[d]);
}

/// y = the rows of x along the last dimension, normalised, times weight and plus bias, if given.
///
/// @param x,y   any strides, likewise
/// @cost        as softmax_rows; of a longer row, the rest is read three times if rows are centered
template <bool Centers, class T, class... Affine>
void norm_rows(On<Cuda>, std::bool_constant<Centers>, double epsilon, const Strided<T>& y,
               const Strided<const T>& x, const Affine&... weight_and_bias) {
  using namespace cuda::detail;
  if (x.extents.product() == 0) return;
  constexpr int width = pack_width<T>(), count = int(sizeof...(Affine));
  const int d = x.extents.dims - 1;
  const auto rows = loops_over_rows(x.extents, d, std::array{x.strides, y.strides});
  launch_rows<width>(Centers ? "layer_norm" : "rms_norm",
                     NormRow<Centers, count, T>{{row_array<width>(x, d, rows, 0)},
                                                row_array<width>(y, d, rows, 1),
                                                {common_row<width>(weight_and_bias)...},
                                                epsilon},
                     rows, x.extents[d], x.strides[d]);
}

/// dx = the gradient of norm_rows' x, given the gradient g of its result. As softmax_slopes; of a
/// longer row, the rest is read four times if rows are centered, else three times.
template <bool Centers, class T, class... Weight>
void norm_slopes(On<Cuda>, std::bool_constant<Centers>, double epsilon, const Strided<T>& dx,
                 const Strided<const T>& g, const Strided<const T>& x, const Weight&... weight) {
  using namespace cuda::detail;
  if (x.extents.product() == 0) return;
  constexpr int width = pack_width<T>();
  const int d = x.extents.dims - 1;
  const auto rows = loops_over_rows(x.extents, d, std::array{x.strides, g.strides, dx.strides});
  NormSlopeRow<Centers, (sizeof...(Weight) > 0), T> row{row_array<width>(x, d, rows, 0),
                                                        row_array<width>(g, d, rows, 1),
                                                        row_array<width>(dx, d, rows, 2),
                                                        {},
                                                        epsilon};
  ((row.weight = common_row<width>(weight)), ...);
  launch_rows<width>(Centers ? "layer_norm" : "rms_norm", row, rows, x.extents[d], x.strides[d]);
}

}  // namespace kernels

}  // namespace cleave::inline v0
