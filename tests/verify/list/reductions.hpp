// Reductions over dimensions.
#pragma once

#include <cleave/ops/reductions/any_all.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/diff.hpp>
#include <cleave/ops/reductions/dot.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>
#include <cleave/ops/reductions/logsumexp.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/reductions/variance.hpp>

#include "listed.hpp"

namespace cleave::ops {

/// Parts that are not called on their own, since a value and its index form a pair.
using Parts = PartsOf<ArgReduce<Max, 1>, ArgCandidates<Max, 1>, detail::KeyOfPair<Max>,
                      detail::IndexOfKey, detail::IndexOfBest<Max>>;
using ExactPartsOf = PartsOf<ExactSum<1u>, ExactParts<kernels::ExactTerms::elements, 1u>,
                             ExactValue<kernels::ExactTerms::elements, double>,
                             ExactWhole<kernels::ExactTerms::elements, 1u>>;
using LogSumExpParts = PartsOf<LogSumExp<1u>, detail::FiniteOrZero>;

namespace listing {

template <class Visit>
constexpr void each_statistic(const Visit& visit) {
  using Two = DimsOf<2>;
  using Every = SameTypes<1, double, float, Complex, Int, bool>;
  visit(listed<Var<2u>, SameTypes<1, double, float, Complex>, Two>(
      CLEAVE_CALL_1(x, var(x, dim<1>{}))));
  visit(listed<Var<3u>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, var(x))));
  visit(listed<Stddev<1u>, SameTypes<1, double, float, Complex>, Two>(
      CLEAVE_CALL_1(x, stddev(x, dim<0>{}))));
  visit(listed<LogSumExp<2u>, SameTypes<1, double, float>, Two>(
      CLEAVE_CALL_1(x, logsumexp(x, dim<1>{}))));
  visit(listed<LogSumExp<3u>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, logsumexp(x))));
  visit(listed<CumSum<1>, Every, Two>(CLEAVE_CALL_1(x, cumsum(x, dim<1>{}))));
  visit(listed<CumSum<0>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, cumsum(x, dim<0>{}))));
  visit(listed<Diff<1>, Every, Two>(CLEAVE_CALL_1(x, diff(x, dim<1>{}))));
  visit(listed<Diff<0>, SameTypes<1, double, Int>, Two>(CLEAVE_CALL_1(x, diff(x, dim<0>{}, 3))));
  visit(listed<Any<2u>, Every, Two>(CLEAVE_CALL_1(x, any(x, dim<1>{})), of_truths));
  visit(listed<All<1u>, Every, Two>(CLEAVE_CALL_1(x, all(x, dim<0>{})), of_truths));
  visit(listed<CountNonzero<2u>, Every, Two>(CLEAVE_CALL_1(x, count_nonzero(x, dim<1>{})),
                                             "the result is a count"));
}

template <class Visit>
constexpr void each_exact_reduction(const Visit& visit) {
  using Two = DimsOf<2>;
  visit(listed<ExactSum<2u>, SameTypes<1, double, float, Complex>, Two>(
      CLEAVE_CALL_1(x, sum<exact>(x, dim<1>{}))));
  visit(listed<ExactSum<3u>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, sum<exact>(x))));
  visit(listed<ExactMean<1u>, SameTypes<1, double, float, Complex>, Two>(
      CLEAVE_CALL_1(x, mean<exact>(x, dim<0>{}))));
  visit(listed<ExactNorm<2u>, SameTypes<1, double, float>, Two>(
      CLEAVE_CALL_1(x, norm<exact>(x, dim<1>{}))));
  visit(listed<ExactDot<2u>, SameTypes<2, double, float, Complex>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(x, y, dot<exact>(x, y, dim<1>{}))));
}

template <class Visit>
constexpr void each_reduction(const Visit& visit) {
  using Two = DimsOf<2>;
  using Numbers = SameTypes<1, double, float, Complex, Int, bool>;
  using Ordered = SameTypes<1, double, float, Int, bool>;
  visit(listed<Reduce<Sum, 2u>, Numbers, Two>(CLEAVE_CALL_1(x, sum(x, dim<1>{}))));
  visit(listed<Reduce<Sum, 1u>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, sum(x, dim<0>{}))));
  visit(listed<Reduce<Sum, 3u>, SameTypes<1, double, Int>, Two>(CLEAVE_CALL_1(x, sum(x))));
  visit(listed<Mean<2u>, SameTypes<1, double, float, Complex>, Two>(
      CLEAVE_CALL_1(x, mean(x, dim<1>{}))));
  visit(listed<Reduce<Product, 2u>, SameTypes<1, double, Complex, Int>, Two>(
      CLEAVE_CALL_1(x, prod(x, dim<1>{}))));
  visit(listed<Reduce<Max, 2u>, Ordered, Two>(CLEAVE_CALL_1(x, max(x, dim<1>{}))));
  visit(listed<Reduce<Min, 1u>, Ordered, Two>(CLEAVE_CALL_1(x, min(x, dim<0>{}))));
  visit(listed<ArgReduce<Max, 1>, SameTypes<1, double, float, Int>, Two>(
      CLEAVE_CALL_1(x, argmax(x, dim<1>{})), of_integers));
  visit(listed<ArgReduce<Min, 0>, SameTypes<1, double, float, bool>, Two>(
      CLEAVE_CALL_1(x, argmin(x, dim<0>{})), of_integers));
  visit(listed<ArgReduceWhole<Max, 1>, SameTypes<1, double>, Two>(
      "argmax(x, dim<1>{}); rows are not sharded",
      [](const auto& x) { return call_op(ArgReduceWhole<Max, 1>{}, x); }, of_integers));
  visit(listed<Dot<2u>, SameTypes<2, double, Complex, Int>, DimsOf<2, 2>>(
      CLEAVE_CALL_2(x, y, dot(x, y, dim<1>{}))));
  visit(listed<Dot<1u>, SameTypes<2, double>, DimsOf<1, 1>>(CLEAVE_CALL_2(x, y, dot(x, y))));
  visit(listed<Norm<2, 2u>, SameTypes<1, double, float>, Two>(CLEAVE_CALL_1(x, norm(x, dim<1>{}))));
  visit(listed<Norm<1, 3u>, SameTypes<1, double>, Two>(CLEAVE_CALL_1(x, norm<1>(x))));
  visit(listed<Norm<norm_inf, 1u>, SameTypes<1, double>, Two>(
      CLEAVE_CALL_1(x, norm<norm_inf>(x, dim<0>{}))));
  each_statistic(visit);
  each_exact_reduction(visit);
}

}  // namespace listing

}  // namespace cleave::ops
