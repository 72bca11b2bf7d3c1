#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "../list/convolutions.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Windows<1>) {
  return {[](const Arrays& x) {
    const index_t rows = x[0].shape[0], n = x[0].shape[1];
    Numbers y({rows, n / 2, 2});
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) = x[0].at({index[0], 2 * index[1] + index[2]});
    return y;
  }};
}
inline Naive naive_of(ops::OverlapAdd<1>) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], 20});
    for (const naive::Indices& index : naive::all_indices(x[0].shape))
      y.at({index[0], 2 * index[1] + 3 * index[2]}) += x[0].at(index);
    return y;
  }};
}

/// x is [b, c, ..], weight [n, c / groups, ..] and the optional bias [n].
template <int N>
Numbers naive_convolution(const Arrays& x, const Convolution<N>& how, index_t groups) {
  const Numbers &image = x[0], &filter = x[1];
  naive::Indices shape{image.shape[0], filter.shape[0]};
  for (std::size_t d = 0; d < std::size_t(N); ++d) {
    const index_t last =
        image.shape[2 + d] + 2 * how.padding[d] - how.dilation[d] * (filter.shape[2 + d] - 1) - 1;
    shape.push_back(last / how.stride[d] + 1);
  }
  Numbers y(shape);
  const naive::Indices parts(filter.shape.begin() + 1, filter.shape.end());  // channel, positions
  for (const naive::Indices& index : naive::all_indices(shape)) {
    if (x.size() > 2) y.at(index) = x[2].at({index[1]});
    for (const naive::Indices& part : naive::all_indices(parts)) {
      const index_t group = index[1] / (filter.shape[0] / groups);
      naive::Indices from{index[0], group * filter.shape[1] + part[0]}, of{index[1]};
      of.insert(of.end(), part.begin(), part.end());
      bool inside = true;
      for (std::size_t d = 0; d < std::size_t(N); ++d) {
        const index_t at =
            index[2 + d] * how.stride[d] + part[1 + d] * how.dilation[d] - how.padding[d];
        inside = inside && at >= 0 && at < image.shape[2 + d];
        from.push_back(at);
      }
      if (inside) y.at(index) += image.at(from) * filter.at(of);
    }
  }
  return y;
}
inline Naive naive_of(ops::Conv<1, false>) {
  Naive naive{[](const Arrays& x) { return naive_convolution(x, ops::listing::of_rows, 1); }};
  naive.letters = {"abc", "dbe", "d"};
  naive.extents = {{3, 4, 6, 5, 3}, {1, 2, 1, 3, 5}, {0, 3, 4, 2, 2}};
  return naive;
}
inline Naive naive_of(ops::Conv<3, false>) {
  Naive naive{[](const Arrays& x) { return naive_convolution(x, ops::listing::of_volumes, 1); }};
  naive.letters = {"abcde", "fbghi"};
  naive.extents = {{2, 3, 3, 4, 2, 2, 2, 2, 1}, {1, 2, 1, 2, 3, 3, 3, 1, 2}};
  return naive;
}
template <bool Grouped>
Naive naive_of(ops::Conv<2, Grouped>) {
  Naive naive{[](const Arrays& x) {
    return naive_convolution(x, ops::listing::of_images, Grouped ? 12 : 1);
  }};
  if (Grouped) {
    naive.letters = {"abcd", "efgh"};
    naive.extents = {{3, 24, 3, 4, 12, 2, 2, 2}, {1, 12, 1, 3, 24, 1, 3, 1}};
  } else {
    naive.letters = {"abcd", "ebfg", "e"};
    naive.extents = {{3, 5, 4, 5, 4, 3, 2}, {1, 2, 3, 3, 5, 2, 2}, {0, 3, 2, 3, 2, 2, 1}};
  }
  return naive;
}

/// x is [b, c, ..], weight [c, n / groups, ..] and the optional bias [n]: every element of x is
/// added, times a filter, to the elements of its window.
template <int N>
Numbers naive_transposed(const Arrays& x, const TransposedConvolution<N>& how, index_t groups) {
  const Numbers &image = x[0], &filter = x[1];
  naive::Indices shape{image.shape[0], filter.shape[1] * groups};
  for (std::size_t d = 0; d < std::size_t(N); ++d)
    shape.push_back((image.shape[2 + d] - 1) * how.stride[d] +
                    how.dilation[d] * (filter.shape[2 + d] - 1) + 1 - 2 * how.padding[d] +
                    how.output_padding[d]);
  Numbers y(shape);
  if (x.size() > 2)
    for (const naive::Indices& index : naive::all_indices(shape)) y.at(index) = x[2].at({index[1]});
  const naive::Indices parts(filter.shape.begin() + 1, filter.shape.end());  // filter, positions
  for (const naive::Indices& from : naive::all_indices(image.shape))
    for (const naive::Indices& part : naive::all_indices(parts)) {
      const index_t group = from[1] / (image.shape[1] / groups);
      naive::Indices to{from[0], group * filter.shape[1] + part[0]}, of{from[1]};
      of.insert(of.end(), part.begin(), part.end());
      bool inside = true;
      for (std::size_t d = 0; d < std::size_t(N); ++d) {
        to.push_back(from[2 + d] * how.stride[d] + part[1 + d] * how.dilation[d] - how.padding[d]);
        inside = inside && to.back() >= 0 && to.back() < shape[2 + d];
      }
      if (inside) y.at(to) += image.at(from) * filter.at(of);
    }
  return y;
}
inline Naive naive_of(ops::ConvTranspose<1, false>) {
  Naive naive{[](const Arrays& x) { return naive_transposed(x, ops::listing::to_rows, 1); }};
  naive.letters = {"abc", "bde", "d"};
  naive.extents = {{3, 4, 5, 6, 4}, {1, 2, 1, 3, 2}, {0, 3, 2, 2, 3}};
  return naive;
}
inline Naive naive_of(ops::ConvTranspose<2, true>) {
  Naive naive{[](const Arrays& x) { return naive_transposed(x, ops::listing::to_images, 2); }};
  naive.letters = {"abcd", "befg"};
  naive.extents = {{3, 4, 5, 4, 3, 2, 3}, {1, 6, 2, 1, 2, 3, 1}};
  return naive;
}
inline Naive naive_of(ops::ConvTranspose<3, false>) {
  Naive naive{[](const Arrays& x) { return naive_transposed(x, ops::listing::to_volumes, 1); }};
  naive.letters = {"abcde", "bfghi"};
  naive.extents = {{2, 3, 3, 4, 2, 2, 2, 3, 1}, {1, 2, 1, 2, 3, 3, 1, 2, 2}};
  return naive;
}

/// Calls f(y, x, n) for the elements x of windows over the last N dimensions that are not in the
/// padding, where n is their number, or that of all if padding counts.
template <int N, class F>
Numbers naive_pool(const Numbers& x, const Pooling<N>& how, Number64 start, const F& f) {
  const std::size_t first = x.shape.size() - N;
  naive::Indices shape = x.shape, sizes;
  for (std::size_t i = 0; i < std::size_t(N); ++i) {
    const index_t stride = how.stride[i] == 0 ? how.size[i] : how.stride[i];
    shape[first + i] =
        (x.shape[first + i] + 2 * how.padding[i] - how.dilation[i] * (how.size[i] - 1) - 1) /
            stride +
        1;
    sizes.push_back(how.size[i]);
  }
  Numbers y(shape);
  for (const naive::Indices& index : naive::all_indices(shape)) {
    std::vector<Number64> found;
    for (const naive::Indices& k : naive::all_indices(sizes)) {
      naive::Indices from = index;
      bool inside = true;
      for (std::size_t i = 0; i < std::size_t(N); ++i) {
        const index_t stride = how.stride[i] == 0 ? how.size[i] : how.stride[i];
        index_t& at = from[first + i];
        at = at * stride + k[i] * how.dilation[i] - how.padding[i];
        inside = inside && at >= 0 && at < x.shape[first + i];
      }
      if (inside) found.push_back(x.at(from));
    }
    double count = double(found.size());
    if (how.count_include_pad) {
      count = 1;
      for (const index_t size : sizes) count *= double(size);
    }
    y.at(index) = start;
    for (const Number64& value : found) f(y.at(index), value, count);
  }
  return y;
}
template <int N>
Naive naive_of_pool(const Pooling<N>& how, bool largest, std::vector<naive::Indices> extents = {}) {
  Naive naive{[=](const Arrays& x) {
    if (largest)
      return naive_pool(x[0], how, -std::numeric_limits<double>::infinity(),
                        [](Number64& y, const Number64& v, double) { y = std::max(re(y), re(v)); });
    return naive_pool(x[0], how, 0,
                      [](Number64& y, const Number64& v, double count) { y += v / count; });
  }};
  naive.extents = std::move(extents);
  return naive;
}
inline const std::vector<naive::Indices> of_cells_extents{{2, 3, 4, 3}, {1, 1, 2, 5}, {0, 2, 3, 2}};
inline Naive naive_of(ops::MaxPool<2>) { return naive_of_pool(ops::listing::of_pool, true); }
inline Naive naive_of(ops::AvgPool<2>) { return naive_of_pool(ops::listing::of_pool, false); }
inline Naive naive_of(ops::MaxPool<1>) { return naive_of_pool(ops::listing::of_pairs, true); }
inline Naive naive_of(ops::AvgPool<1>) {
  return naive_of_pool(ops::listing::of_rows_apart, false, {{3, 7}, {5, 3}, {0, 4}});
}
inline Naive naive_of(ops::MaxPool<3>) {
  return naive_of_pool(ops::listing::of_cells, true, of_cells_extents);
}
inline Naive naive_of(ops::AvgPool<3>) {
  return naive_of_pool(ops::listing::of_cells, false, of_cells_extents);
}

}  // namespace cleave::testing
