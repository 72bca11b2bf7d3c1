#pragma once

#include "../list/shapes.hpp"
#include "operation.hpp"

namespace cleave::testing {

namespace naive_shapes {

/// The same elements in the same order, with other extents.
inline Numbers reshaped(const Numbers& x, const naive::Indices& shape) {
  Numbers y(shape);
  y.values = x.values;
  return y;
}

/// y[.., i, ..] = x[.., place(i, n), ..] along a dimension of extent n, which becomes length(n). y
/// is `outside` where there is no such index.
template <class Length, class Place>
Naive gathered(std::size_t dim, Length length, Place place, Number64 outside = 0) {
  return {[=](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    const index_t n = shape[dim];
    shape[dim] = length(n);
    Numbers y(shape);
    for (const naive::Indices& index : naive::all_indices(shape)) {
      naive::Indices from = index;
      from[dim] = place(index[dim], n);
      y.at(index) = from[dim] >= 0 && from[dim] < n ? x[0].at(from) : outside;
    }
    return y;
  }};
}

}  // namespace naive_shapes

template <int... D>
Naive naive_of(ops::Permute<D...>) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[std::size_t(D)]...});
    for (const naive::Indices& index : naive::all_indices(x[0].shape))
      y.at({index[std::size_t(D)]...}) = x[0].at(index);
    return y;
  }};
}
/// unsqueeze(x, dim<1>{}) of a matrix, or [a] broadcast along the columns of a second array [a, b].
template <unsigned Mask>
Naive naive_of(ops::BroadcastDims<Mask>) {
  static_assert(Mask == 2);
  return {[](const Arrays& x) {
    if (x.size() == 1) {
      Numbers y({x[0].shape[0], 1, x[0].shape[1]});
      y.values = x[0].values;
      return y;
    }
    Numbers y(x[1].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) = x[0].at({index[0]});
    return y;
  }};
}
/// flatten(x, dim<0, 1>{}) of three dimensions, or of a whole matrix.
template <int First, int Count>
Naive naive_of(ops::Flatten<First, Count>) {
  static_assert(First == 0 && Count == 2);
  return {[](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    shape[1] *= shape[0];
    shape.erase(shape.begin());
    return naive_shapes::reshaped(x[0], shape);
  }};
}
/// To {-1, 2}, or {-1, 1, 3}.
template <int First, int Count>
Naive naive_of(ops::Unflatten<First, Count>) {
  constexpr index_t inner = Count;
  Naive naive{[](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    shape[std::size_t(First)] /= inner;
    naive::Indices added{inner};
    if (Count == 3) added = {1, inner};
    shape.insert(shape.begin() + First + 1, added.begin(), added.end());
    return naive_shapes::reshaped(x[0], shape);
  }};
  naive.extents = First == 0 ? std::vector<naive::Indices>{{10, 3}, {12, 2}, {2, 5}, {0, 3}}
                             : std::vector<naive::Indices>{{4, 15}, {2, 12}, {3, 3}, {2, 0}};
  return naive;
}
/// To {-1, 1, 2}.
template <int Count>
Naive naive_of(ops::Reshape<Count>) {
  Naive naive{[](const Arrays& x) {
    return naive_shapes::reshaped(x[0], {x[0].shape[0] * x[0].shape[1] / 2, 1, 2});
  }};
  naive.extents = {{5, 4}, {2, 7}, {0, 3}};
  return naive;
}
template <int D>
Naive naive_of(ops::Squeeze<D>) {
  Naive naive{[](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    shape.erase(shape.begin() + D);
    return naive_shapes::reshaped(x[0], shape);
  }};
  naive.extents = {{5, 1, 4}, {1, 1, 2}, {0, 1, 3}};
  return naive;
}
/// To extent 4.
template <int D>
Naive naive_of(ops::Expand<D>) {
  Naive naive = naive_shapes::gathered(
      D, [](index_t) { return index_t(4); }, [](index_t, index_t) { return index_t(0); });
  naive.extents = {{1, 5}, {1, 2}, {1, 0}};
  return naive;
}
/// Every second index from 1 to the last but one, or indices 1 and 2.
template <int D>
Naive naive_of(ops::Slice<D>) {
  if (D == 1)
    return naive_shapes::gathered(
        1, [](index_t n) { return (n - 1) / 2; }, [](index_t i, index_t) { return 1 + 2 * i; });
  Naive naive = naive_shapes::gathered(
      0, [](index_t) { return index_t(2); }, [](index_t i, index_t) { return 1 + i; });
  naive.extents = {{3, 5}, {3, 1}, {3, 0}};
  return naive;
}
/// Index 1.
template <int D>
Naive naive_of(ops::Select<D>) {
  static_assert(D == 0);
  Naive naive{[](const Arrays& x) {
    Numbers y({x[0].shape[1]});
    for (index_t j = 0; j < y.shape[0]; ++j) y.at({j}) = x[0].at({1, j});
    return y;
  }};
  naive.extents = {{5, 3}, {2, 7}, {3, 0}};
  return naive;
}
/// Two elements before, one after.
template <int D>
Naive naive_of(ops::Embed<D>) {
  return naive_shapes::gathered(
      D, [](index_t n) { return n + 3; }, [](index_t i, index_t) { return i - 2; });
}
template <int D, class T>
Naive naive_of(ops::Pad<D, T>) {
  return naive_shapes::gathered(
      D, [](index_t n) { return n + 3; }, [](index_t i, index_t) { return i - 2; }, 0.5);
}
/// Two or more elements before and after, element by element from the next one inside.
template <int D, PadMode Mode>
Naive naive_of(ops::PadRepeated<D, Mode>) {
  constexpr index_t before = Mode == PadMode::replicate ? 5 : 2;
  constexpr index_t added = Mode == PadMode::replicate ? 9 : Mode == PadMode::reflect ? 3 : 5;
  Naive naive = naive_shapes::gathered(
      D, [](index_t n) { return n + added; },
      [](index_t i, index_t n) {
        index_t from = i - before;
        while (from < 0 || from >= n) {
          if (Mode == PadMode::circular) from += from < 0 ? n : -n;
          else if (Mode == PadMode::reflect) from = from < 0 ? -from : 2 * (n - 1) - from;
          else from += from < 0 ? 1 : -1;
        }
        return from;
      });
  naive.extents = {{5, 3}, {1, 7}, {2, 4}, {0, 3}};
  return naive;
}
/// The operands one after the other.
template <int D, int N>
Naive naive_of(ops::Cat<D, N>) {
  return {[](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    for (std::size_t k = 1; k < x.size(); ++k) shape[D] += x[k].shape[D];
    Numbers y(shape);
    index_t before = 0;
    for (const Numbers& part : x) {
      for (naive::Indices index : naive::all_indices(part.shape)) {
        const Number64 value = part.at(index);
        index[D] += before;
        y.at(index) = value;
      }
      before += part.shape[D];
    }
    return y;
  }};
}
template <int D, int N>
Naive naive_of(ops::Stack<D, N>) {
  static_assert(D == 1 && N == 2);
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], 2, x[0].shape[1]});
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) = x[std::size_t(index[1])].at({index[0], index[2]});
    return y;
  }};
}
/// Three times.
template <int D>
Naive naive_of(ops::Tile<D>) {
  return naive_shapes::gathered(
      D, [](index_t n) { return 3 * n; }, [](index_t i, index_t n) { return i % n; });
}
/// By -4.
template <int D>
Naive naive_of(ops::Roll<D>) {
  return naive_shapes::gathered(
      D, [](index_t n) { return n; }, [](index_t i, index_t n) { return (i + 4) % n; });
}
template <int D>
Naive naive_of(ops::Flip<D>) {
  return naive_shapes::gathered(
      D, [](index_t n) { return n; }, [](index_t i, index_t n) { return n - 1 - i; });
}
/// Upper: from the diagonal below the main one upwards; lower: from the one above it downwards.
template <bool Upper>
Naive naive_of(ops::Triangle<Upper>) {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      const index_t j = index.back(), i = index[index.size() - 2];
      if (Upper ? j >= i - 1 : j <= i + 1) y.at(index) = x[0].at(index);
    }
    return y;
  }};
}
inline Naive naive_of(ops::Redistribute) {
  return {[](const Arrays& x) { return x[0]; }};
}

}  // namespace cleave::testing
