#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "../list/attention.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::CausalMask) {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) = index[2] <= index[1] ? x[0].at(index) : Number64(-1);
    return y;
  }};
}

/// q is [b, n, d] or [b, g, n, d], k [b, m, d], v [b, m, e].
template <bool IsCausal>
Naive naive_of(ops::ScaledDotProductAttention<IsCausal>) {
  Naive naive{[](const Arrays& x) {
    const Numbers &q = x[0], &k = x[1], &v = x[2];
    const std::size_t row = q.shape.size() - 2, column = row + 1;
    naive::Indices shape = q.shape;
    shape[column] = v.shape[2];
    Numbers y(shape);
    for (const naive::Indices& index : naive::all_indices(shape)) {
      naive::Indices of_query = index;
      const index_t keys = IsCausal ? std::min(k.shape[1], index[row] + 1) : k.shape[1];
      std::vector<double> products(std::size_t(keys), 0.0);
      for (index_t j = 0; j < keys; ++j)
        for (index_t d = 0; d < k.shape[2]; ++d) {
          of_query[column] = d;
          products[std::size_t(j)] += re(q.at(of_query)) * re(k.at({index[0], j, d}));
        }
      const double largest = *std::max_element(products.begin(), products.end());
      double total = 0, sum = 0;
      for (index_t j = 0; j < keys; ++j) {
        const double above = products[std::size_t(j)] - largest;
        const double weight = std::exp(above / std::sqrt(double(k.shape[2])));
        total += weight;
        sum += weight * re(v.at({index[0], j, index[column]}));
      }
      y.at(index) = sum / total;
    }
    return y;
  }};
  naive.needs_elements = true;
  naive.extents = {{5, 3, 4, 4}, {1, 7, 2, 2}, {3, 1, 5, 5}};
  return naive;
}
/// q is [b, n, d], k [b, m, d], v [b, m, e]. The mask [n, m] is added, or tells which keys are
/// visible; a query without visible keys yields zeros.
template <ops::MaskKind Mask>
  requires(Mask != ops::MaskKind::none)
Naive naive_of(ops::ScaledDotProductAttention<false, Mask>) {
  Naive naive{[is_added = Mask == ops::MaskKind::added](const Arrays& x) {
    const Numbers &q = x[0], &k = x[1], &v = x[2], &mask = x[3];
    Numbers y({q.shape[0], q.shape[1], v.shape[2]});
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      const index_t b = index[0], i = index[1];
      std::vector<double> products;
      for (index_t j = 0; j < k.shape[1]; ++j) {
        double product = 0;
        for (index_t d = 0; d < k.shape[2]; ++d)
          product += re(q.at({b, i, d})) * re(k.at({b, j, d}));
        products.push_back(product / std::sqrt(double(k.shape[2])));
        if (is_added) products.back() += re(mask.at({i, j}));
      }
      const double largest = *std::max_element(products.begin(), products.end());
      double total = 0, sum = 0;
      for (index_t j = 0; j < k.shape[1]; ++j) {
        if (!is_added && re(mask.at({i, j})) == 0) continue;
        const double weight = std::exp(products[std::size_t(j)] - largest);
        total += weight;
        sum += weight * re(v.at({b, j, index[2]}));
      }
      y.at(index) = total != 0 ? sum / total : 0;
    }
    return y;
  }};
  naive.needs_elements = true;
  naive.letters = {"bik", "bjk", "bjv", "ij"};
  naive.extents = {{2, 5, 3, 4, 2}, {1, 3, 2, 7, 3}, {3, 1, 4, 2, 1}};
  return naive;
}

template <bool IsCausal>
Naive naive_of(ops::AttentionOfWholeKeys<IsCausal>) {
  return naive_of(ops::ScaledDotProductAttention<IsCausal>{});
}

inline Naive naive_of(ops::RotaryEmbedding) {
  Naive naive{[](const Arrays& x) {
    Numbers y(x[0].shape);
    const double d = double(x[0].shape[2]);
    for (naive::Indices index : naive::all_indices(y.shape)) {
      const index_t pair = index[2] / 2;
      const double angle = double(index[1]) / std::pow(10000, double(2 * pair) / d);
      const std::complex<double> turn(std::cos(angle), std::sin(angle));
      const double a = re(x[0].at({index[0], index[1], 2 * pair}));
      const double b = re(x[0].at({index[0], index[1], 2 * pair + 1}));
      const std::complex<double> rotated = turn * std::complex<double>(a, b);
      y.at(index) = index[2] % 2 == 0 ? rotated.real() : rotated.imag();
    }
    return y;
  }};
  naive.extents = {{5, 3, 4}, {1, 7, 2}, {3, 1, 6}, {2, 5, 0}, {0, 3, 2}};
  return naive;
}

}  // namespace cleave::testing
