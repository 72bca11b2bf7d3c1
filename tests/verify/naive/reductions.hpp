#pragma once

#include <cleave/ops/list/reductions.hpp>

#include "operation.hpp"

namespace cleave::testing {

template <class By, unsigned Mask>
Naive naive_of(ops::Reduce<By, Mask>) {
  constexpr ReduceOp op = By::value;
  constexpr bool chooses = op == ReduceOp::max || op == ReduceOp::min;
  Naive naive = by_group(Mask, [](const Elements& group) {
    if (chooses) {
      Number64 best = group.at(0);
      for (const Number64& x : group)
        if (op == ReduceOp::max ? re(x) > re(best) : re(x) < re(best)) best = x;
      return best;
    }
    Number64 result = op == ReduceOp::product ? 1 : 0;
    for (const Number64& x : group) result = op == ReduceOp::product ? result * x : result + x;
    return result;
  }, chooses);
  naive.has_zeros = op == ReduceOp::product;
  return naive;
}
template <unsigned Mask>
Naive naive_of(ops::Mean<Mask>) {
  return by_group(Mask, [](const Elements& group) {
    Number64 sum = 0;
    for (const Number64& x : group) sum += x;
    return sum / double(group.size());
  });
}
template <class By, int D>
Naive naive_of(ops::ArgReduce<By, D>) {
  return by_group(1u << D, [](const Elements& group) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < group.size(); ++i)
      if (By::value == ReduceOp::max ? re(group[i]) > re(group[best])
                                     : re(group[i]) < re(group[best]))
        best = i;
    return Number64(double(best));
  }, true);
}
template <class By, int D>
Naive naive_of(ops::ArgReduceWhole<By, D>) {
  return naive_of(ops::ArgReduce<By, D>{});
}
template <unsigned Mask>
Naive naive_of(ops::ExactSum<Mask>) {
  return naive_of(ops::Reduce<Sum, Mask>{});
}
template <unsigned Mask>
Naive naive_of(ops::ExactMean<Mask>) {
  return naive_of(ops::Mean<Mask>{});
}

template <int P, unsigned Mask>
Naive naive_of(ops::Norm<P, Mask>) {
  return by_group(Mask, [](const Elements& group) {
    double result = 0;
    for (const Number64& x : group)
      result = P == norm_inf ? std::max(result, std::abs(re(x)))
                             : result + std::pow(std::abs(re(x)), P);
    return Number64(P == 2 ? std::sqrt(result) : result);
  }, P == norm_inf);
}
template <unsigned Mask>
Naive naive_of(ops::ExactNorm<Mask>) {
  return naive_of(ops::Norm<2, Mask>{});
}
template <unsigned Mask>
Naive naive_of(ops::Dot<Mask>) {
  return Naive{[](const Arrays& x) {
    Numbers products = x[0];
    for (std::size_t i = 0; i < products.values.size(); ++i) products.values[i] *= x[1].values[i];
    return naive_of(ops::Reduce<Sum, Mask>{}).result({products});
  }};
}
template <unsigned Mask>
Naive naive_of(ops::ExactDot<Mask>) {
  return naive_of(ops::Dot<Mask>{});
}

}  // namespace cleave::testing
