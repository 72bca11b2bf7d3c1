// Operations that move elements without computing.
#pragma once

#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>

#include "listed.hpp"

namespace cleave::ops::listing {

/// Slices and padding of a dimension.
template <class Visit>
constexpr void each_part(const Visit& visit) {
  visit(listed<Slice<1>, SameTypes<1, double, Int>, DimsOf<2>>(
      "slice(x, dim<1>{}, 1, -1, 2)", [](const auto& x) { return slice(x, dim<1>{}, 1, -1, 2); }));
  visit(listed<Slice<0>, SameTypes<1, double, Complex>, DimsOf<2>>(
      "split(x, dim<0>{}, {1, 2})[1]",
      [](const auto& x) { return split(x, dim<0>{}, {1, 2})[1]; }));
  visit(listed<Select<0>, SameTypes<1, double, bool>, DimsOf<2>>(
      "select(x, dim<0>{}, 1); dimension 0 is gathered",
      [](const auto& x) { return select(x, dim<0>{}, 1); }, "", Select<0>{{}, 1}));
  visit(listed<Embed<1>, SameTypes<1, double, Complex, bool>, DimsOf<2>>(
      "pad(x, dim<1>{}, 2, 1)", [](const auto& x) { return pad(x, dim<1>{}, 2, 1); }));
  visit(listed<Pad<0, double>, SameTypes<1, double>, DimsOf<2>>(
      "pad(x, dim<0>{}, 2, 1, 0.5)", [](const auto& x) { return pad(x, dim<0>{}, 2, 1, 0.5); }));
  visit(listed<PadRepeated<1, PadMode::reflect>, SameTypes<1, double, Complex>, DimsOf<2>>(
      CLEAVE_CALL_1(x, pad<PadMode::reflect>(x, dim<1>{}, 2, 1))));
  visit(listed<PadRepeated<1, PadMode::replicate>, SameTypes<1, double, Int>, DimsOf<2>>(
      CLEAVE_CALL_1(x, pad<PadMode::replicate>(x, dim<1>{}, 5, 4))));
  visit(listed<PadRepeated<1, PadMode::circular>, SameTypes<1, double, bool>, DimsOf<2>>(
      CLEAVE_CALL_1(x, pad<PadMode::circular>(x, dim<1>{}, 2, 3))));
}

/// Concatenation and reordering.
template <class Visit>
constexpr void each_joint(const Visit& visit) {
  visit(listed<Cat<1, 2>, SameTypes<2, double, bool>, DimsOf<2, 2>>(
      "cat(dim<1>{}, x, y)", [](const auto& x, const auto& y) { return cat(dim<1>{}, x, y); }));
  visit(listed<Cat<0, 3>, SameTypes<3, double>, DimsOf<1, 1, 1>>(
      "cat(dim<0>{}, x, y, z)",
      [](const auto& x, const auto& y, const auto& z) { return cat(dim<0>{}, x, y, z); }));
  visit(listed<Stack<1, 2>, SameTypes<2, double, Int>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(x, y, stack(dim<1>{}, x, y))));
  visit(listed<Tile<0>, SameTypes<1, double, Complex, bool>, DimsOf<2>>(
      CLEAVE_CALL_1(x, tile(x, dim<0>{}, 3))));
  visit(listed<Roll<1>, SameTypes<1, double, Int>, DimsOf<2>>(
      "roll(x, dim<1>{}, -4)", [](const auto& x) { return roll(x, dim<1>{}, -4); }));
  visit(listed<Flip<0>, SameTypes<1, double, Complex, bool>, DimsOf<2>>(
      "flip(x, dim<0>{})", [](const auto& x) { return flip(x, dim<0>{}); }));
}

template <class Visit>
constexpr void each_shape(const Visit& visit) {
  visit(listed<Permute<2, 0, 1>, SameTypes<1, double, bool>, DimsOf<3>>(
      CLEAVE_CALL_1(x, permute(x, dim<2, 0, 1>{}))));
  visit(listed<Permute<1, 0>, SameTypes<1, double, Complex>, DimsOf<2>>(
      CLEAVE_CALL_1(x, transpose(x))));
  visit(listed<BroadcastDims<2u>, SameTypes<1, double, Int>, DimsOf<2>>(
      CLEAVE_CALL_1(x, unsqueeze(x, dim<1>{}))));
  visit(listed<BroadcastDims<2u>, SameTypes<2, double, Complex>, DimsOf<1, 2>, 1>(
      CLEAVE_CALL_2(x, like, broadcast_dims<2u>(x, like))));
  visit(listed<Flatten<0, 2>, SameTypes<1, double, bool>, DimsOf<3>>(
      CLEAVE_CALL_1(x, flatten(x, dim<0, 1>{}))));
  visit(listed<Flatten<0, 2>, SameTypes<1, double, Int>, DimsOf<2>>(CLEAVE_CALL_1(x, flatten(x))));
  visit(listed<Unflatten<0, 2>, SameTypes<1, double, Complex>, DimsOf<2>>(
      CLEAVE_CALL_1(x, unflatten(x, dim<0>{}, {-1, 2}))));
  visit(listed<Unflatten<1, 3>, SameTypes<1, double>, DimsOf<2>>(
      CLEAVE_CALL_1(x, unflatten(x, dim<1>{}, {-1, 1, 3}))));
  visit(listed<Reshape<3>, SameTypes<1, double, bool>, DimsOf<2>>(
      CLEAVE_CALL_1(x, reshape(x, {-1, 1, 2}))));
  visit(listed<Squeeze<1>, SameTypes<1, double, Int>, DimsOf<3>>(
      "squeeze(x, dim<1>{}); dimension 1 is gathered",
      [](const auto& x) { return squeeze(x, dim<1>{}); }));
  visit(listed<Expand<0>, SameTypes<1, double, bool>, DimsOf<2>>(
      "expand(x, dim<0>{}, 4); dimension 0 is gathered",
      [](const auto& x) { return expand(x, dim<0>{}, 4); }));
  each_part(visit);
  each_joint(visit);
  visit(listed<Triangle<false>, SameTypes<1, double, Complex, Int>, DimsOf<3>>(
      CLEAVE_CALL_1(x, tril(x, 1))));
  visit(
      listed<Triangle<true>, SameTypes<1, double, bool>, DimsOf<2>>(CLEAVE_CALL_1(x, triu(x, -1))));
  visit(listed<Redistribute, SameTypes<1, double, Int>, DimsOf<2>>(CLEAVE_CALL_1(x, resolve(x))));
}

}  // namespace cleave::ops::listing
