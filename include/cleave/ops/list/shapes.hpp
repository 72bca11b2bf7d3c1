// Operations that move elements, and compute none.
#pragma once

#include <cleave/ops/flatten.hpp>
#include <cleave/ops/list/entry.hpp>
#include <cleave/ops/placement.hpp>
#include <cleave/ops/redistribute.hpp>
#include <cleave/ops/transpose.hpp>

namespace cleave::ops::listing {

template <class Visit>
constexpr void each_shape(const Visit& visit) {
  visit(listed<Permute<2, 0, 1>, SameTypes<1, double, bool>, DimsOf<3>>(
      "permute(x, dim<2, 0, 1>{})", [](const auto& x) { return permute(x, dim<2, 0, 1>{}); }));
  visit(listed<Permute<1, 0>, SameTypes<1, double, Complex>, DimsOf<2>>(
      "transpose(x)", [](const auto& x) { return transpose(x); }));
  visit(listed<BroadcastDims<2u>, SameTypes<1, double, Int>, DimsOf<2>>(
      "unsqueeze(x, dim<1>{})", [](const auto& x) { return unsqueeze(x, dim<1>{}); }));
  visit(listed<BroadcastDims<2u>, SameTypes<2, double, Complex>, DimsOf<1, 2>, 1>(
      "broadcast_dims<2u>(x, like)",
      [](const auto& x, const auto& like) { return broadcast_dims<2u>(x, like); }));
  visit(listed<Flatten<0, 2>, SameTypes<1, double, bool>, DimsOf<3>>(
      "flatten(x, dim<0, 1>{}); dimension 1 is made whole",
      [](const auto& x) { return flatten(x, dim<0, 1>{}); }));
  visit(listed<Flatten<0, 2>, SameTypes<1, double, Int>, DimsOf<2>>(
      "flatten(x); all but dimension 0 is made whole", [](const auto& x) { return flatten(x); }));
  visit(listed<Unflatten<0, 2>, SameTypes<1, double, Complex>, DimsOf<2>>(
      "unflatten(x, dim<0>{}, {-1, 2})",
      [](const auto& x) { return unflatten(x, dim<0>{}, {-1, 2}); }));
  visit(listed<Unflatten<1, 3>, SameTypes<1, double>, DimsOf<2>>(
      "unflatten(x, dim<1>{}, {-1, 1, 3})",
      [](const auto& x) { return unflatten(x, dim<1>{}, {-1, 1, 3}); }));
  visit(listed<Reshape<3>, SameTypes<1, double, bool>, DimsOf<2>>(
      "reshape(x, {-1, 1, 2}); all dimensions are made whole",
      [](const auto& x) { return reshape(x, {-1, 1, 2}); }));
  visit(listed<Redistribute, SameTypes<1, double, Int>, DimsOf<2>>(
      "resolve(x)", [](const auto& x) { return resolve(x); }));
}

}  // namespace cleave::ops::listing
