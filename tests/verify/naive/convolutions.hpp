#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

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

/// Calls f(y, x) for the elements of 3 x 2 windows with strides 1 and 2 over x [a, rows, columns],
/// padded by a row and a column on each side. Elements in the padding are skipped.
template <class F>
Numbers naive_pool(const Numbers& x, Number64 start, const F& f) {
  Numbers y({x.shape[0], x.shape[1], x.shape[2] / 2 + 1});
  for (const naive::Indices& index : naive::all_indices(y.shape)) {
    y.at(index) = start;
    for (index_t i = index[1] - 1; i <= index[1] + 1; ++i)
      for (index_t j = 2 * index[2] - 1; j <= 2 * index[2]; ++j)
        if (i >= 0 && i < x.shape[1] && j >= 0 && j < x.shape[2])
          f(y.at(index), x.at({index[0], i, j}));
  }
  return y;
}
inline Naive naive_of(ops::MaxPool<2>) {
  return {[](const Arrays& x) {
    const auto larger = [](Number64& y, const Number64& v) { y = std::max(re(y), re(v)); };
    return naive_pool(x[0], -std::numeric_limits<double>::infinity(), larger);
  }};
}
inline Naive naive_of(ops::AvgPool<2>) {
  return {[](const Arrays& x) {
    return naive_pool(x[0], 0, [](Number64& y, const Number64& v) { y += v / 6.0; });
  }};
}
/// Pools pairs of neighbours along rows.
template <class F>
Numbers naive_pool_of_pairs(const Numbers& x, const F& f) {
  Numbers y({x.shape[0], x.shape[1] / 2});
  for (const naive::Indices& at : naive::all_indices(y.shape))
    y.at(at) = f(x.at({at[0], 2 * at[1]}), x.at({at[0], 2 * at[1] + 1}));
  return y;
}
inline Naive naive_of(ops::MaxPool<1>) {
  return {[](const Arrays& x) {
    return naive_pool_of_pairs(x[0], [](auto a, auto b) { return std::max(re(a), re(b)); });
  }};
}
inline Naive naive_of(ops::AvgPool<1>) {
  return {[](const Arrays& x) {
    return naive_pool_of_pairs(x[0], [](auto a, auto b) { return (a + b) / 2.0; });
  }};
}

}  // namespace cleave::testing
