// Variances and standard deviations over dimensions.
//
// Computed in two passes, the mean and then the squared deviations, which avoids cancellation when
// elements are far from zero.
//
//     // y[R] = var(x[S0])      two all-reduces of one number per result
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/in_accumulator.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The deviations of elements from the mean over the dimensions of the mask.
template <unsigned Mask, class X>
constexpr auto deviations(const X& x) {
  const auto center = resolve(call_op(ops::Mean<Mask>{reduced_count<Mask>(x)}, x));
  return sub(x, broadcast_dims<Mask>(center, x));
}

/// |a|², a real number.
template <class A>
constexpr auto squared_magnitude(const A& a) {
  if constexpr (is_complex<typename A::value_type>) return real(mul(a, conj(a)));
  else return square(a);
}

/// The number of elements minus the correction, at least 0, in the real type of x.
template <unsigned Mask, class X>
constexpr auto degrees_of_freedom(const X& x, double correction) {
  const double rest = double(reduced_count<Mask>(x)) - correction;
  return kernels::real_t<typename X::value_type>(rest > 0 ? rest : 0);
}

}  // namespace detail

namespace ops {

/// The sum of |x - mean(x)|² over the dimensions of the mask, divided by their number of elements
/// minus the correction.
template <unsigned Mask>
struct Var : Composite {
  static constexpr const char* name = "var";
  double correction = 1;

  constexpr auto body(const auto& operand) const {
    const auto x = resolve(operand);
    const auto total =
        resolve(call_op(Reduce<Sum, Mask>{},
                        cleave::detail::squared_magnitude(cleave::detail::deviations<Mask>(x))));
    return div(total, cleave::detail::degrees_of_freedom<Mask>(x, correction));
  }
  // the mean also depends on x, but deviations from it add up to 0
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& operand) const {
    using T = typename std::remove_cvref_t<decltype(operand)>::value_type;
    const auto x = resolve(operand);
    const auto scale = div(mul(g, 2), cleave::detail::degrees_of_freedom<Mask>(x, correction));
    return mul(broadcast_dims<Mask>(cast<T>(scale), x), cleave::detail::deviations<Mask>(x));
  }
};

/// The square root of Var. Where all elements are equal, the gradient is 0.
template <unsigned Mask>
struct Stddev : Composite {
  static constexpr const char* name = "stddev";
  double correction = 1;

  constexpr auto body(const auto& x) const { return sqrt(call_op(Var<Mask>{{}, correction}, x)); }
  constexpr auto gradient(wrt<0> at, const auto& g, const auto& y, const auto& x) const {
    return Var<Mask>{{}, correction}.gradient(
        at, div(g, mul(call_op(detail::OrOne{}, resolve(y)), 2)), y, x);
  }
};

}  // namespace ops

/// The divisor of var and stddev, as in PyTorch: the number of elements minus `correction`. 1 gives
/// the unbiased estimate from a sample, 0 the variance of the elements themselves.
struct Correction {
  double correction = 1;
};

namespace detail {

template <template <unsigned> class Op, class... R, class X, class D>
constexpr auto spread(const X& x, D, Correction by) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: var and stddev require a floating-point element type; cast first");
  return in_accumulator(x, [&](const auto& v) {
    return call_op<R...>(Op<checked_mask<X, D>()>{{}, by.correction}, v);
  });
}

}  // namespace detail

/// The variance over all elements, or over the dimensions of a `dim`:
/// `var(x, dim<1>{}, {.correction = 0})`.
///
/// @return     x without the reduced dimensions, real for complex x; NaN or infinite if the number
///             of elements does not exceed the correction
/// @collective every rank of the mesh, if x is Partial, or a reduced dimension is sharded: two
///             all-reduces of one number per result, for sums and for squares
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto var(const X& x, D over = {}, Correction by = {}) {
  return detail::spread<ops::Var, R...>(x, over, by);
}
CLEAVE_USAGE(var, "var(x), var(x, dim<0>{})")

/// The standard deviation, the square root of var. Not named `std`, which would conflict with the
/// standard library after `using namespace cleave`.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto stddev(const X& x, D over = {}, Correction by = {}) {
  return detail::spread<ops::Stddev, R...>(x, over, by);
}
CLEAVE_USAGE(stddev, "stddev(x), stddev(x, dim<0>{})")

}  // namespace cleave::inline v0
