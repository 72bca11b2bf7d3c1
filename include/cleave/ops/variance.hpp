// Variances and standard deviations over dimensions.
//
// In two passes: the mean first, then squares of what is left, so that nothing cancels however far
// from zero the elements lie.
//
//     // y[R] = var(x[S0])      two all-reduces of a number per result
#pragma once

#include <type_traits>

#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/ops/functions.hpp>
#include <cleave/ops/redistribute.hpp>
#include <cleave/ops/reduce.hpp>
#include <cleave/ops/transpose.hpp>
#include <cleave/ops/wider.hpp>

namespace cleave {

namespace detail {

/// What elements differ by from the mean over the dimensions of the mask.
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

/// The number of elements less the correction, at least 0, as the type that x is measured in.
template <unsigned Mask, class X>
constexpr auto degrees_of_freedom(const X& x, double correction) {
  const double rest = double(reduced_count<Mask>(x)) - correction;
  return kernels::real_t<typename X::value_type>(rest > 0 ? rest : 0);
}

}  // namespace detail

namespace ops {

/// The sum of |x - mean(x)|² over the dimensions of the mask, divided by their number of elements
/// less the correction.
template <unsigned Mask>
struct Var : Composite {
  static constexpr const char* name = "var";
  double correction = 1;

  constexpr auto body(const auto& operand) const {
    const auto x = resolve(operand);
    const auto total = resolve(
        sum_of<Mask>(cleave::detail::squared_magnitude(cleave::detail::deviations<Mask>(x))));
    return div(total, cleave::detail::degrees_of_freedom<Mask>(x, correction));
  }
  // the mean moves as well, but deviations from it add up to nothing
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& operand) const {
    using T = typename std::remove_cvref_t<decltype(operand)>::value_type;
    const auto x = resolve(operand);
    const auto scale = div(mul(g, 2), cleave::detail::degrees_of_freedom<Mask>(x, correction));
    return mul(broadcast_dims<Mask>(cast<T>(scale), x), cleave::detail::deviations<Mask>(x));
  }
};

/// The root of that. Where all elements are equal, the gradient is 0.
template <unsigned Mask>
struct Stddev : Composite {
  static constexpr const char* name = "stddev";
  double correction = 1;

  constexpr auto body(const auto& x) const { return sqrt(call_op(Var<Mask>{{}, correction}, x)); }
  constexpr auto gradient(wrt<0> at, const auto& g, const auto& y, const auto& x) const {
    return Var<Mask>{{}, correction}.gradient(at, div(g, mul(or_one(resolve(y)), 2)), y, x);
  }
};

}  // namespace ops

/// How var and stddev divide, as in PyTorch: by the number of elements less `correction`. 1
/// estimates the variance of what the elements are a sample of, 0 gives that of the elements.
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
/// @return     a real number for complex x; NaN or infinite where there are not more elements than
///             the correction
/// @collective every rank of the mesh, if x is Partial, or a reduced dimension is sharded: two
///             all-reduces of a number per result, of sums and of squares
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto var(const X& x, D over = {}, Correction by = {}) {
  return detail::spread<ops::Var, R...>(x, over, by);
}

/// The standard deviation, the root of var; not named `std` so that `using namespace cleave` leaves
/// the standard library alone.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto stddev(const X& x, D over = {}, Correction by = {}) {
  return detail::spread<ops::Stddev, R...>(x, over, by);
}

}  // namespace cleave
