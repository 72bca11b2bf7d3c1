#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "../list/indices.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// Calls visit(index in the whole array, index in the selection) for every element that `indices`
/// selects along dimension `along`.
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
    each_indexed(x[1], shape, std::size_t(D),
                 [&](const auto& whole, const auto& part) { y.at(part) = x[0].at(whole); });
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
    each_indexed(x[1], x[0].shape, std::size_t(D),
                 [&](const auto& whole, const auto& part) { y.at(whole) += x[0].at(part); });
    return y;
  };
  return {result, {Domain::any, Domain::classes}};
}

template <int D>
Naive naive_of(ops::Gather<D>) {
  Naive naive{[](const Arrays& x) {
                Numbers y(x[1].shape);
                for (const naive::Indices& index : naive::all_indices(y.shape)) {
                  naive::Indices from = index;
                  from[std::size_t(D)] = index_t(re(x[1].at(index)));
                  y.at(index) = x[0].at(from);
                }
                return y;
              },
              {Domain::any, Domain::classes}};
  naive.indexed = D;
  return naive;
}
template <int D>
Naive naive_of(ops::ScatterAdd<D>) {
  return {[](const Arrays& x) {
            naive::Indices shape = x[0].shape;
            shape[std::size_t(D)] = 4;
            Numbers y(shape);
            for (const naive::Indices& index : naive::all_indices(x[0].shape)) {
              naive::Indices to = index;
              to[std::size_t(D)] = index_t(re(x[1].at(index)));
              y.at(to) += x[0].at(index);
            }
            return y;
          },
          {Domain::any, Domain::classes}};
}

/// Calls visit(index in the whole array, index of the values) for every element that two arrays of
/// indices name together.
template <class Visit>
void each_named(const Numbers& i, const Numbers& j, const naive::Indices& values,
                const Visit& visit) {
  for (const naive::Indices& value : naive::all_indices(values)) {
    naive::Indices whole{index_t(re(i.at({value[0]}))), index_t(re(j.at({value[0]})))};
    whole.insert(whole.end(), value.begin() + 1, value.end());
    visit(whole, value);
  }
}
/// Extents with room for the indices 0 to 3 in the first two dimensions.
inline Naive of_two_indices(std::function<Numbers(const Arrays&)> result,
                            std::vector<Domain> domain, std::vector<naive::Indices> extents) {
  Naive naive{std::move(result), std::move(domain)};
  naive.extents = std::move(extents);
  return naive;
}
inline Naive naive_of(ops::IndexGet<2>) {
  return of_two_indices(
      [](const Arrays& x) {
        Numbers y({x[1].shape[0], x[0].shape[2]});
        each_named(x[1], x[2], y.shape,
                   [&](const auto& whole, const auto& at) { y.at(at) = x[0].at(whole); });
        return y;
      },
      {Domain::any, Domain::classes, Domain::classes}, {{5, 4, 3, 6}, {4, 7, 2, 3}, {4, 4, 1, 0}});
}
inline Naive naive_of(ops::IndexSum<2>) {
  return of_two_indices(
      [](const Arrays& x) {
        Numbers y({4, 5, x[0].shape[1]});
        each_named(x[1], x[2], x[0].shape,
                   [&](const auto& whole, const auto& at) { y.at(whole) += x[0].at(at); });
        return y;
      },
      {Domain::any, Domain::classes, Domain::classes}, {{5, 3}, {1, 2}, {0, 3}});
}
inline Naive naive_of(ops::IndexFill<2, double>) {
  return of_two_indices(
      [](const Arrays& x) {
        Numbers y = x[0];
        each_named(x[1], x[2], x[1].shape,
                   [&](const auto& whole, const auto&) { y.at(whole) = 3.0; });
        return y;
      },
      {Domain::any, Domain::classes, Domain::classes}, {{5, 4, 3}, {4, 7, 6}, {0, 4, 0}});
}
/// One index where gradients are tested: if several are equal, only the last value has one.
inline Naive naive_of(ops::IndexPut<2>) {
  return of_two_indices(
      [](const Arrays& x) {
        Numbers y = x[0];
        each_named(x[2], x[3], x[1].shape,
                   [&](const auto& whole, const auto& at) { y.at(whole) = x[1].at(at); });
        return y;
      },
      {Domain::any, Domain::any, Domain::classes, Domain::classes},
      {{5, 4, 3, 1}, {4, 7, 2, 1}, {4, 5, 2, 0}});
}

/// The first `count` indices of a column or row of x in sorted order.
inline std::vector<index_t> naive_order(const Elements& x, index_t count, bool descending) {
  std::vector<index_t> order(x.size());
  std::iota(order.begin(), order.end(), index_t{0});
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
    const double u = re(x[std::size_t(a)]), v = re(x[std::size_t(b)]);
    return descending ? v < u : u < v;
  });
  order.resize(std::size_t(count));
  return order;
}
inline Naive naive_of(ops::OrderedIndices<1>) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], 2});
    for (index_t i = 0; i < y.shape[0]; ++i) {
      Elements row;
      for (index_t j = 0; j < x[0].shape[1]; ++j) row.push_back(x[0].at({i, j}));
      const std::vector<index_t> order = naive_order(row, 2, true);
      for (index_t j = 0; j < 2; ++j) y.at({i, j}) = double(order[std::size_t(j)]);
    }
    return y;
  }};
}
inline Naive naive_of(ops::OrderedIndices<0>) {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    for (index_t j = 0; j < y.shape[1]; ++j) {
      Elements column;
      for (index_t i = 0; i < y.shape[0]; ++i) column.push_back(x[0].at({i, j}));
      const std::vector<index_t> order = naive_order(column, y.shape[0], false);
      for (index_t i = 0; i < y.shape[0]; ++i) y.at({i, j}) = double(order[std::size_t(i)]);
    }
    return y;
  }};
}

}  // namespace cleave::testing
