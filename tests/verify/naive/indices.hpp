#pragma once

#include <cstddef>

#include <cleave/ops/list/indices.hpp>

#include "operation.hpp"

namespace cleave::testing {

/// Calls visit(index of the whole array, index of its parts) for all parts that `indices` names along
/// dimension `along`.
template <class Visit>
void each_indexed(const Numbers& indices, const naive::Indices& parts, std::size_t along,
                  const Visit& visit) {
  const auto count = std::ptrdiff_t(indices.shape.size()), at = std::ptrdiff_t(along);
  for (const naive::Indices& part : naive::all_indices(parts)) {
    naive::Indices whole(part.begin(), part.begin() + at);
    const naive::Indices index(part.begin() + at, part.begin() + at + count);
    whole.push_back(index_t(re(indices.at(index))));
    whole.insert(whole.end(), part.begin() + at + count, part.end());
    visit(whole, part);
  }
}

template <int D>
Naive naive_of(ops::IndexSelect<D>) {
  const auto result = [](const Arrays& x) {
    naive::Indices shape(x[0].shape.begin(), x[0].shape.begin() + D);
    shape.insert(shape.end(), x[1].shape.begin(), x[1].shape.end());
    shape.insert(shape.end(), x[0].shape.begin() + D + 1, x[0].shape.end());
    Numbers y(shape);
    each_indexed(x[1], shape, std::size_t(D), [&](const auto& whole, const auto& part) {
      y.at(part) = x[0].at(whole);
    });
    return y;
  };
  Naive naive{result, {Domain::any, Domain::classes}};
  naive.indexed = D;
  return naive;
}
template <int D>
Naive naive_of(ops::IndexAdd<D>) {
  const auto result = [](const Arrays& x) {
    naive::Indices shape(x[0].shape.begin(), x[0].shape.begin() + D);
    shape.push_back(4);
    shape.insert(shape.end(), x[0].shape.begin() + D + std::ptrdiff_t(x[1].shape.size()),
                 x[0].shape.end());
    Numbers y(shape);
    each_indexed(x[1], x[0].shape, std::size_t(D), [&](const auto& whole, const auto& part) {
      y.at(whole) += x[0].at(part);
    });
    return y;
  };
  return {result, {Domain::any, Domain::classes}};
}

}  // namespace cleave::testing
