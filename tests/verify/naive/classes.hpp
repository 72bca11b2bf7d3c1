#pragma once

#include "../list/classes.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// exp(x) divided by the sum of exp(x) along a dimension of a matrix, or its logarithm.
inline Naive naive_softmax(std::size_t along, bool logarithm) {
  Naive naive{[along, logarithm](const Arrays& x) {
    Numbers y(x[0].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      naive::Indices other = index;
      double largest = re(x[0].at(index)), sum = 0;
      for (other[along] = 0; other[along] < y.shape[along]; ++other[along])
        largest = std::fmax(largest, re(x[0].at(other)));
      for (other[along] = 0; other[along] < y.shape[along]; ++other[along])
        sum += std::exp(re(x[0].at(other)) - largest);
      const double share = re(x[0].at(index)) - largest - std::log(sum);
      y.at(index) = logarithm ? share : std::exp(share);
    }
    return y;
  }};
  naive.needs_elements = true;
  return naive;
}
template <int D>
Naive naive_of(ops::LogSoftmax<D>) {
  return naive_softmax(std::size_t(D), true);
}
template <int D>
Naive naive_of(ops::Softmax<D>) {
  return naive_softmax(std::size_t(D), false);
}
inline Naive naive_of(ops::CrossEntropy) {
  Naive naive{[](const Arrays& x) {
                Numbers mean;
                const index_t rows = x[0].shape[0];
                for (index_t i = 0; i < rows; ++i) {
                  double sum = 0;
                  for (index_t j = 0; j < x[0].shape[1]; ++j) sum += std::exp(re(x[0].at({i, j})));
                  const double chosen = re(x[0].at({i, index_t(re(x[1].at({i})))}));
                  mean.values[0] += (std::log(sum) - chosen) / double(rows);
                }
                return mean;
              },
              {Domain::any, Domain::classes}};
  naive.needs_elements = true;
  naive.extents = {{5, 4}, {1, 7}, {7, 5}};
  return naive;
}
inline Naive naive_of(ops::ExactCrossEntropy) { return naive_of(ops::CrossEntropy{}); }
template <int D, bool Logarithm>
Naive naive_of(ops::SoftmaxOfRows<D, Logarithm>) {
  return naive_softmax(std::size_t(D), Logarithm);
}
template <class T>
Naive naive_of(ops::OneHot<T>) {
  return {[](const Arrays& x) {
            Numbers y({x[0].shape[0], 4});
            for (index_t i = 0; i < y.shape[0]; ++i) y.at({i, index_t(re(x[0].at({i})))}) = 1;
            return y;
          },
          {Domain::classes}};
}

}  // namespace cleave::testing
