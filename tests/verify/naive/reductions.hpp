#pragma once

#include <algorithm>

#include "../list/reductions.hpp"
#include "operation.hpp"

namespace cleave::testing {

template <class By, unsigned Mask>
Naive naive_of(ops::Reduce<By, Mask>) {
  constexpr ReduceOp op = By::value;
  constexpr bool chooses = op == ReduceOp::max || op == ReduceOp::min;
  Naive naive = by_group(
      Mask,
      [](const Elements& group) {
        if (chooses) {
          Number64 best = group.at(0);
          for (const Number64& x : group)
            if (op == ReduceOp::max ? re(x) > re(best) : re(x) < re(best)) best = x;
          return best;
        }
        Number64 result = op == ReduceOp::product ? 1 : 0;
        for (const Number64& x : group) result = op == ReduceOp::product ? result * x : result + x;
        return result;
      },
      chooses);
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
  return by_group(
      1u << D,
      [](const Elements& group) {
        std::size_t best = 0;
        for (std::size_t i = 1; i < group.size(); ++i)
          if (By::value == ReduceOp::max ? re(group[i]) > re(group[best])
                                         : re(group[i]) < re(group[best]))
            best = i;
        return Number64(double(best));
      },
      true);
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
  return by_group(
      Mask,
      [](const Elements& group) {
        double result = 0;
        for (const Number64& x : group)
          result = P == norm_inf ? std::max(result, std::abs(re(x)))
                                 : result + std::pow(std::abs(re(x)), P);
        return Number64(P == 2 ? std::sqrt(result) : result);
      },
      P == norm_inf);
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

template <unsigned Mask>
Naive naive_of(ops::Var<Mask>) {
  return by_group(Mask, [](const Elements& group) {
    const double n = double(group.size());
    Number64 mean = 0;
    for (const Number64& x : group) mean += x / n;
    double squares = 0;
    for (const Number64& x : group) squares += std::norm(x - mean);
    return Number64(squares / std::max(0.0, n - 1));
  });
}
template <unsigned Mask>
Naive naive_of(ops::Stddev<Mask>) {
  Naive naive = naive_of(ops::Var<Mask>{});
  naive.result = [variance = naive.result](const Arrays& x) {
    Numbers y = variance(x);
    for (Number64& value : y.values) value = std::sqrt(re(value));
    return y;
  };
  return naive;
}
template <unsigned Mask>
Naive naive_of(ops::LogSumExp<Mask>) {
  return by_group(Mask, [](const Elements& group) {
    double sum = 0;
    for (const Number64& x : group) sum += std::exp(re(x));
    return Number64(std::log(sum));
  });
}
template <int D>
Naive naive_of(ops::CumSum<D>) {
  return Naive{[](const Arrays& x) {
    Numbers y = x[0];
    for (const naive::Indices& index : naive::all_indices(y.shape)) {
      naive::Indices before = index;
      if (before[D]-- > 0) y.at(index) += y.at(before);
    }
    return y;
  }};
}

/// Of rows once, of columns three times: 1 1, or 1 -3 3 -1 backwards.
template <int D>
Naive naive_of(ops::Diff<D>) {
  return Naive{[](const Arrays& x) {
    Numbers y = x[0];
    for (int times = 0; times < (D == 1 ? 1 : 3); ++times) {
      naive::Indices shape = y.shape;
      shape[D] = std::max<index_t>(shape[D] - 1, 0);
      Numbers next(shape);
      for (const naive::Indices& index : naive::all_indices(shape)) {
        naive::Indices after = index;
        ++after[D];
        next.at(index) = y.at(after) - y.at(index);
      }
      y = next;
    }
    return y;
  }};
}

/// f(number of nonzero elements in a group, size of the group).
template <class F>
Naive by_nonzeros(unsigned mask, F f) {
  return by_group(mask, [f](const Elements& group) {
    std::size_t nonzeros = 0;
    for (const Number64& x : group) nonzeros += x != Number64(0);
    return Number64(double(f(nonzeros, group.size())));
  });
}
template <unsigned Mask>
Naive naive_of(ops::Any<Mask>) {
  return by_nonzeros(Mask, [](std::size_t nonzeros, std::size_t) { return nonzeros > 0; });
}
template <unsigned Mask>
Naive naive_of(ops::All<Mask>) {
  return by_nonzeros(Mask, [](std::size_t nonzeros, std::size_t all) { return nonzeros == all; });
}
template <unsigned Mask>
Naive naive_of(ops::CountNonzero<Mask>) {
  return by_nonzeros(Mask, [](std::size_t nonzeros, std::size_t) { return nonzeros; });
}

}  // namespace cleave::testing
