#pragma once

#include <cmath>

#include "../list/normalisation.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// Rows minus their mean (if Centers), divided by the root of their mean square, times x[1], plus
/// x[2].
template <bool Centers>
Naive naive_of(ops::RowNormWhole<Centers>) {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    const std::size_t along = y.shape.size() - 1;
    const index_t n = y.shape[along];
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      naive::Indices other = index;
      const auto element = [&](index_t i) {
        other[along] = i;
        return re(x[0].at(other));
      };
      double mean = 0, squares = 0;
      for (index_t i = 0; Centers && i < n; ++i) mean += element(i) / double(n);
      for (index_t i = 0; i < n; ++i) squares += std::pow(element(i) - mean, 2) / double(n);
      double value = (re(x[0].at(index)) - mean) / std::sqrt(squares + ops::listing::norm_epsilon);
      if (x.size() > 1) value *= re(x[1].at({index[along]}));
      if (x.size() > 2) value += re(x[2].at({index[along]}));
      y.at(index) = value;
    }
    return y;
  }};
}
/// A composite operation has no letters, so the usual ones make a weight as long as dimension 0.
template <bool Centers>
Naive naive_of(ops::RowNorm<Centers>) {
  Naive naive = naive_of(ops::RowNormWhole<Centers>{});
  naive.extents = {{5, 5, 5}, {1, 1, 1}, {7, 7, 7}, {0, 0, 0}};
  return naive;
}

/// x is [b, c, n], with c in 12 groups; weight and bias are per channel.
inline Naive naive_of(ops::GroupNorm) {
  Naive naive{[](const Arrays& x) {
    Numbers y(x[0].shape);
    const index_t width = y.shape[1] / 12, n = y.shape[2];
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      const index_t first = index[1] / width * width;
      double mean = 0, squares = 0;
      const auto each = [&](const auto& f) {
        for (index_t c = first; c < first + width; ++c)
          for (index_t i = 0; i < n; ++i) f(re(x[0].at({index[0], c, i})));
      };
      each([&](double v) { mean += v / double(width * n); });
      each([&](double v) { squares += std::pow(v - mean, 2) / double(width * n); });
      const double value =
          (re(x[0].at(index)) - mean) / std::sqrt(squares + ops::listing::norm_epsilon);
      y.at(index) = value * re(x[1].at({index[1]})) + re(x[2].at({index[1]}));
    }
    return y;
  }};
  naive.letters = {"abc", "b", "b"};
  naive.extents = {{3, 24, 2}, {1, 12, 5}};
  return naive;
}

}  // namespace cleave::testing
