#pragma once

#include <cleave/ops/list/shapes.hpp>

#include "operation.hpp"

namespace cleave::testing {

namespace naive_shapes {

/// The shards of a dimension of outer * inner indices are those of one of `outer`, or the call is
/// refused.
inline std::string refusal_of(std::size_t dim, index_t outer, index_t inner, const Layout& layout,
                              const naive::Indices& mesh) {
  const naive::Indices few(dim + 1, outer), many(dim + 1, outer * inner);
  for (const naive::Indices& here : naive::all_indices(mesh)) {
    naive::Indices wanted;
    for (const index_t i : naive::owned(layout, int(dim), few, mesh, here))
      for (index_t j = 0; j < inner; ++j) wanted.push_back(i * inner + j);
    if (naive::owned(layout, int(dim), many, mesh, here) != wanted)
      return "where shards end inside of";
  }
  return "";
}

/// The elements as they follow each other, under other extents.
inline Numbers reshaped(const Numbers& x, const naive::Indices& shape) {
  Numbers y(shape);
  y.values = x.values;
  return y;
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
/// unsqueeze(x, dim<1>{}) of a matrix; or [a] along the columns of a second array [a, b].
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
/// flatten(x, dim<0, 1>{}) of three dimensions, or all of a matrix.
template <int First, int Count>
Naive naive_of(ops::Flatten<First, Count>) {
  static_assert(First == 0 && Count == 2);
  Naive naive{[](const Arrays& x) {
    naive::Indices shape = x[0].shape;
    shape[1] *= shape[0];
    shape.erase(shape.begin());
    return naive_shapes::reshaped(x[0], shape);
  }};
  naive.refusal = [](const std::vector<naive::Indices>& x, const std::vector<Layout>& layouts,
                     const naive::Indices& mesh) {
    return naive_shapes::refusal_of(0, x[0][0], x[0][1], layouts[0], mesh);
  };
  return naive;
}
/// Into {-1, 2}, or {-1, 1, 3}.
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
  naive.refusal = [](const std::vector<naive::Indices>& x, const std::vector<Layout>& layouts,
                     const naive::Indices& mesh) {
    return naive_shapes::refusal_of(std::size_t(First), x[0][std::size_t(First)] / inner, inner,
                                    layouts[0], mesh);
  };
  return naive;
}
/// Into {-1, 1, 2}.
template <int Count>
Naive naive_of(ops::Reshape<Count>) {
  Naive naive{[](const Arrays& x) {
    return naive_shapes::reshaped(x[0], {x[0].shape[0] * x[0].shape[1] / 2, 1, 2});
  }};
  naive.extents = {{5, 4}, {2, 7}, {0, 3}};
  return naive;
}
inline Naive naive_of(ops::Redistribute) {
  return {[](const Arrays& x) { return x[0]; }};
}

}  // namespace cleave::testing
