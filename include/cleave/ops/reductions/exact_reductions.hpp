// Exact sums: `sum<exact>(x)`, `mean<exact>`, `dot<exact>` and `norm<exact>` are the exact result
// rounded once. The result is bitwise identical for any number of ranks, mesh and placements, with
// threads, MPI and GPUs, because ranks exchange integers, whose sum does not depend on the order.
//
//     // y[R] = sum<exact>(x[S0])      one all-reduce of a few hundred bytes per result
//
// docs/exact_sums.md states the guarantee and its cost.
#pragma once

#include <array>
#include <type_traits>

#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/host/exact_sums.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/reductions/dot.hpp>
#include <cleave/ops/reductions/norm.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

using kernels::ExactEpilogue;
using kernels::ExactTerms;

/// "ab->a" or "ab,ab->a": one operand or two, and the dimensions outside the mask.
constexpr RuleText exact_factors(ExactTerms terms, int dims, unsigned mask) {
  const RuleText operand = dim_letters(0, dims), result = dim_letters(0, dims, mask);
  return terms == ExactTerms::products ? factors_text(operand, operand, result)
                                       : factors_text(operand, result);
}

}  // namespace detail

namespace ops {

/// The kind of terms as a type, which kernels for GPUs take.
template <kernels::ExactTerms Terms>
inline constexpr std::integral_constant<kernels::ExactTerms, Terms> exact_terms{};

/// A rank's part of exact sums: integers, in a new last dimension.
template <kernels::ExactTerms Terms, unsigned Mask>
struct ExactParts {
  using result = kernels::ExactWord;
  index_t words = 0;

  static constexpr const char* name = "exact_parts";
  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    return detail::joined(detail::exact_factors(Terms, dims[0], Mask), 'w');
  }
  constexpr Shape extents() const { return Shape::filled(1, words); }

  static void kernel(const auto& on, const Task&, const auto& y, const auto&... x) {
    exact_parts(on, exact_terms<Terms>, Mask, y.data, x...);
  }
};

/// The numbers that the integers of ExactParts represent.
template <kernels::ExactTerms Terms, class T>
struct ExactValue {
  using result = T;
  kernels::ExactEpilogue epilogue{};

  static constexpr const char* name = "exact_value";
  static constexpr const char* replicated = "w";
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const RuleText result = detail::dim_letters(0, dims[0] - 1);
    RuleText words = result;
    words += 'w';
    return detail::factors_text(words, result);
  }
  void kernel(const auto& on, const Task&, const auto& y, const auto& x) const {
    exact_values(on, exact_terms<Terms>, epilogue, x, y.data);
  }
};

/// ExactParts and ExactValue in one kernel, for dimensions that are not sharded.
template <kernels::ExactTerms Terms, unsigned Mask>
struct ExactWhole {
  kernels::ExactEpilogue epilogue{};

  static constexpr const char* name = "exact_whole";
  static constexpr RuleText replicated = detail::dim_letters(0, max_dims, ~Mask);
  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    return detail::exact_factors(Terms, dims[0], Mask);
  }
  void kernel(const auto& on, const Task&, const auto& y, const auto&... x) const {
    exact_reduce(on, exact_terms<Terms>, Mask, epilogue, y.data, x...);
  }
};

/// Base of exact reductions over the dimensions of a mask.
template <kernels::ExactTerms Terms, kernels::ExactEpilogue::Kind Kind, unsigned Mask>
struct ExactReduction : Composite {
  static constexpr bool takes_request = true;

  template <class Request, class X, class... Y>
  static constexpr auto body(const Request& request, const X& x, const Y&... y) {
    using T = typename X::value_type;
    const kernels::ExactEpilogue epilogue{Kind, detail::reduced_count<Mask>(x)};
    if constexpr (!(detail::may_shard<Mask, X>() || ... || detail::may_shard<Mask, Y>())) {
      return detail::call_as(request, ExactWhole<Terms, Mask>{epilogue}, x, y...);
    } else {
      const auto parts = call_op(ExactParts<Terms, Mask>{kernels::exact_words<T>(Terms)}, x, y...);
      return detail::call_as(request, ExactValue<Terms, T>{epilogue}, parts);
    }
  }
};

template <unsigned Mask>
struct ExactSum : ExactReduction<kernels::ExactTerms::elements, kernels::ExactEpilogue::sum, Mask> {
  static constexpr const char* name = "sum";
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return broadcast_dims<Mask>(g, x);
  }
};

template <unsigned Mask>
struct ExactMean
    : ExactReduction<kernels::ExactTerms::elements, kernels::ExactEpilogue::mean, Mask> {
  static constexpr const char* name = "mean";
  static constexpr auto gradient(wrt<0> at, const auto& g, const auto& y, const auto& x) {
    return Mean<Mask>{detail::reduced_count<Mask>(x)}.gradient(at, g, y, x);
  }
};

template <unsigned Mask>
struct ExactNorm
    : ExactReduction<kernels::ExactTerms::squares, kernels::ExactEpilogue::root, Mask> {
  static constexpr const char* name = "norm";
  static constexpr auto gradient(wrt<0> at, const auto& g, const auto& y, const auto& x) {
    return Norm<2, Mask>::gradient(at, g, y, x);
  }
};

template <unsigned Mask>
struct ExactDot : ExactReduction<kernels::ExactTerms::products, kernels::ExactEpilogue::sum, Mask> {
  static constexpr const char* name = "dot";
  template <int I>
  static constexpr auto gradient(wrt<I> at, const auto& g, const auto& z, const auto& x,
                                 const auto& y) {
    return Dot<Mask>::gradient(at, g, z, x, y);
  }
};

}  // namespace ops

namespace detail {

template <class E>
concept ExactTag = std::is_same_v<E, exact>;

}  // namespace detail

/// The exact sum over all elements, or over the dimensions of a `dim`, rounded once to the element
/// type. For integers and bools the same as `sum`.
///
/// @return  without the summed dimensions; never Partial on the axes that shard one of them
/// @collective every rank of the mesh, if a summed dimension is sharded or x must be redistributed
/// @cost    one all-reduce if a summed dimension is sharded: per result, 560 bytes for doubles, 104
///          for floats, 48 for halves; the same amount of memory
template <detail::ExactTag E, class... R, AnyTensor X, class D = every_dim>
constexpr auto sum(const X& x, D over = {}) {
  if constexpr (std::is_integral_v<typename X::value_type>) return sum<R...>(x, over);
  else return call_op<R...>(ops::ExactSum<detail::checked_mask<X, D>()>{}, x);
}

/// The exact mean, rounded once; NaN for no elements. Otherwise as sum<exact>.
template <detail::ExactTag E, class... R, AnyTensor X, class D = every_dim>
constexpr auto mean(const X& x, D = {}) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: mean requires a floating-point element type; cast first");
  return call_op<R...>(ops::ExactMean<detail::checked_mask<X, D>()>{}, x);
}

/// The exact square root of the sum of squares, rounded once: it overflows only if the result does.
/// @cost  as sum<exact>, with twice the bytes
template <detail::ExactTag E, class... R, AnyTensor X, class D = every_dim>
constexpr auto norm(const X& x, D = {}) {
  detail::require_real<X>();
  return call_op<R...>(ops::ExactNorm<detail::checked_mask<X, D>()>{}, x);
}

/// The exact sum of the products of elements, rounded once.
/// @cost  as sum<exact>, with twice the bytes
template <detail::ExactTag E, class... R, AnyTensor X, AnyTensor Y, class D = every_dim>
constexpr auto dot(const X& x, const Y& y, D over = {}) {
  detail::require_pair<X, Y>();
  if constexpr (std::is_integral_v<typename X::value_type>) return dot<R...>(x, y, over);
  else return call_op<R...>(ops::ExactDot<detail::checked_mask<X, D>()>{}, x, y);
}

}  // namespace cleave::inline v0
