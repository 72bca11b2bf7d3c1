// Products of matrices.
#pragma once

#include <cleave/ops/list/entry.hpp>
#include <cleave/ops/matmul.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_product(const Visit& visit) {
  visit(listed<Matmul, SameTypes<2, double, float, Complex, Int>, DimsOf<2, 2>>(
      "matmul(x, w)", [](const auto& x, const auto& w) { return matmul(x, w); }));
}

}  // namespace cleave::ops::listing
