#pragma once

#include <cleave/ops/list/shapes.hpp>

#include "operation.hpp"

namespace cleave::testing {

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
inline Naive naive_of(ops::Redistribute) {
  return {[](const Arrays& x) { return x[0]; }};
}

}  // namespace cleave::testing
