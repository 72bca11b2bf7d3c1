// Reductions over dimensions.
#pragma once

#include <cleave/ops/arg_reduce.hpp>
#include <cleave/ops/list/entry.hpp>
#include <cleave/ops/reduce.hpp>

namespace cleave::ops {

/// Nobody calls these by themselves: a pair of a value and an index is one thing.
using Parts = PartsOf<ArgReduce<Max, 1>, ArgCandidates<Max, 1>, KeyOfPair<Max>, IndexOfKey,
                      IndexOfBest<Max>>;

namespace listing {

template <class Visit>
constexpr void each_reduction(const Visit& visit) {
  using Two = DimsOf<2>;
  using Numbers = SameTypes<1, double, float, Complex, Int, bool>;
  using Ordered = SameTypes<1, double, float, Int, bool>;
  visit(listed<Reduce<Sum, 2u>, Numbers, Two>("sum(x, dim<1>{})",
                                              [](const auto& x) { return sum(x, dim<1>{}); }));
  visit(listed<Reduce<Sum, 1u>, SameTypes<1, double>, Two>(
      "sum(x, dim<0>{})", [](const auto& x) { return sum(x, dim<0>{}); }));
  visit(listed<Reduce<Sum, 3u>, SameTypes<1, double, Int>, Two>(
      "sum(x)", [](const auto& x) { return sum(x); }));
  visit(listed<Mean<2u>, SameTypes<1, double, float, Complex>, Two>(
      "mean(x, dim<1>{})", [](const auto& x) { return mean(x, dim<1>{}); }));
  visit(listed<Reduce<Product, 2u>, SameTypes<1, double, Complex, Int>, Two>(
      "prod(x, dim<1>{})", [](const auto& x) { return prod(x, dim<1>{}); }));
  visit(listed<Reduce<Max, 2u>, Ordered, Two>("max(x, dim<1>{})",
                                              [](const auto& x) { return max(x, dim<1>{}); }));
  visit(listed<Reduce<Min, 1u>, Ordered, Two>("min(x, dim<0>{})",
                                              [](const auto& x) { return min(x, dim<0>{}); }));
  visit(listed<ArgReduce<Max, 1>, SameTypes<1, double, float, Int>, Two>(
      "argmax(x, dim<1>{})", [](const auto& x) { return argmax(x, dim<1>{}); }, of_integers));
  visit(listed<ArgReduce<Min, 0>, SameTypes<1, double, float, bool>, Two>(
      "argmin(x, dim<0>{})", [](const auto& x) { return argmin(x, dim<0>{}); }, of_integers));
  visit(listed<ArgReduceWhole<Max, 1>, SameTypes<1, double>, Two>(
      "argmax(x, dim<1>{}); rows are whole",
      [](const auto& x) { return call_op(ArgReduceWhole<Max, 1>{}, x); }, of_integers));
}

}  // namespace listing

}  // namespace cleave::ops
