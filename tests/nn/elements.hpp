// The elements of tensors, placed or not, and their distance from expected ones.
#pragma once

#include <cmath>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::testing {

/// The whole array on every rank.
template <class X>
auto whole(const X& x) {
  if constexpr (is_dtensor<X>) return x.full_tensor();
  else return x;
}

/// The largest difference between elements and expected ones.
template <class T, int Rank, class Device>
double distance(const Tensor<T, Rank, Device>& found, const double* expected) {
  const Tensor<T, Rank> dense = found.clone().to(Host{});
  double worst = 0;
  for (index_t i = 0; i < dense.size(); ++i) {
    const double off = std::abs(double(dense.data()[i]) - expected[i]);
    if (!(off <= worst)) worst = off;  // NaN is not close
  }
  return worst;
}

}  // namespace cleave::testing
