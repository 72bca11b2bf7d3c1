// Layer norm and RMS norm: normalise rows along the last dimension to mean 0 and variance 1, or to
// mean square 1. If rows are not sharded, one kernel normalises them; if they are, ranks exchange
// one or two numbers per row.
//
//     // y[S0,R] = layer_norm(x[S0,R], weight[R,R], bias[R,R])      no communication
//     // y[R,S1] = layer_norm(x[R,S1], weight[R,S0], bias[R,S0])    two all-reduces
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <cleave/kernels/host/norm_rows.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/in_accumulator.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/reductions/variance.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "ab,b,b->ab": operands are aligned with the last dimensions of the first.
template <std::size_t N>
constexpr RuleText row_norm_factors(const std::array<int, N>& dims) {
  RuleText operands;
  for (std::size_t i = 0; i < N; ++i) {
    if (i > 0) operands += ',';
    operands += dim_letters(dims[0] - dims[i], dims[0]);
  }
  return factors_text(operands, dim_letters(0, dims[0]));
}

/// The last dimension of X as a mask, and all others.
template <class X>
inline constexpr unsigned row_mask = 1u << (X::dims - 1);
template <class X>
inline constexpr unsigned leading_mask = row_mask<X> - 1u;

/// The mean of every row, broadcast along the row.
template <class X>
constexpr auto row_means(const X& x) {
  constexpr unsigned mask = row_mask<X>;
  return broadcast_dims<mask>(resolve(call_op(ops::Mean<mask>{reduced_count<mask>(x)}, x)), x);
}

/// Whether, by the type of x, one kernel computes rows of 16-bit elements: each is rounded once.
template <class X>
constexpr bool norms_sixteen_bits() {
  using Plain = innermost_t<X>;
  if constexpr (is_on_host<X> || call_level<Plain> > 1) return false;
  else return !may_shard<row_mask<X>, Plain>();
}

/// x with elements of type A.
template <class A, class X>
constexpr auto in_type(const X& x) {
  if constexpr (std::is_same_v<typename X::value_type, A>) return x;
  else return cast<A>(x);
}

/// x minus the mean of each row, if rows are centered.
template <bool Centers, class X>
constexpr auto centered_rows(const X& x) {
  if constexpr (Centers) return deviations<row_mask<X>>(x);
  else return waited(x);
}

}  // namespace detail

namespace ops {

template <bool Centers>
struct RowNorm;

/// What operations on rows that are not sharded have in common.
template <bool Centers>
struct OnWholeRows {
  double epsilon = 0;

  static constexpr const char* name = Centers ? "layer_norm" : "rms_norm";
  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    return cleave::detail::row_norm_factors(dims);
  }
  template <std::size_t N>
  static constexpr RuleText replicated(const std::array<int, N>& dims) {
    return cleave::detail::letter_of(dims[0] - 1);
  }
};

/// RowNorm for rows that are not sharded.
template <bool Centers>
struct RowNormWhole : OnWholeRows<Centers> {
  void kernel(const auto& on, const Task&, const auto& y, const auto&... x) const {
    norm_rows(on, std::bool_constant<Centers>{}, this->epsilon, y, x...);
  }
  template <int I, class... Affine>
    requires(I <= int(sizeof...(Affine)))
  constexpr auto gradient(wrt<I> at, const auto& g, const auto& y, const auto& x,
                          const Affine&... weight_and_bias) const {
    return RowNorm<Centers>{{}, this->epsilon}.gradient(at, g, y, x, weight_and_bias...);
  }
};

/// The gradient of RowNormWhole with respect to x, from (g, x) or (g, x, weight).
template <bool Centers>
struct RowNormSlopeWhole : OnWholeRows<Centers> {
  void kernel(const auto& on, const Task&, const auto& dx, const auto&... x) const {
    norm_slopes(on, std::bool_constant<Centers>{}, this->epsilon, dx, x...);
  }
};

/// The gradient of RowNorm with respect to x, for any placements. With h = g · weight, z the
/// normalised row and s its deviation: (h - mean(h) - z · mean(h · z)) / s; without mean(h) if rows
/// are not centered.
template <bool Centers>
struct RowNormSlope : CompositeByPlacement {
  double epsilon = 0;

  static constexpr const char* name = RowNormSlopeWhole<Centers>::name;
  template <class G, class X, class... Weight>
  constexpr auto body(const G& g, const X& x, const Weight&... weight) const {
    return cleave::detail::by_rows<X::dims - 1>(
        x,
        [&](const auto& rows) {
          return call_op(RowNormSlopeWhole<Centers>{{epsilon}}, g, rows, weight...);
        },
        [&](const auto& rows) {
          using T = typename X::value_type;
          using A = accumulator_t<T>;
          using cleave::detail::in_type;
          return in_type<T>(of_parts(in_type<A>(g), in_type<A>(rows), in_type<A>(weight)...));
        },
        g, weight...);
  }

 private:
  constexpr auto of_parts(const auto& g, const auto& x, const auto&... weight) const {
    using cleave::detail::row_means;
    const auto centered = cleave::detail::centered_rows<Centers>(x);
    const auto deviation = sqrt(add(row_means(square(centered)), epsilon));
    const auto z = div(centered, deviation);
    const auto h = [&] {
      if constexpr (sizeof...(weight) == 0) return g;
      else return mul(g, weight...);
    }();
    const auto slope = sub(h, mul(z, row_means(mul(h, z))));
    if constexpr (Centers) return div(sub(slope, row_means(h)), deviation);
    else return div(slope, deviation);
  }
};

/// Rows along the last dimension minus their mean, divided by their standard deviation (Centers),
/// or divided by their root mean square; times a weight and plus a bias, if there are any.
template <bool Centers>
struct RowNorm : CompositeByPlacement {
  double epsilon = 0;

  static constexpr const char* name = RowNormWhole<Centers>::name;
  constexpr auto body(const auto& operand, const auto&... weight_and_bias) const {
    const auto x = resolve(operand);
    return cleave::detail::by_rows<decltype(x)::dims - 1>(
        x,
        [&](const auto& rows) {
          return call_op(RowNormWhole<Centers>{{epsilon}}, rows, weight_and_bias...);
        },
        [&](const auto& rows) {
          const auto centered = cleave::detail::centered_rows<Centers>(rows);
          const auto squares = cleave::detail::row_means(square(centered));
          return weighted(div(centered, sqrt(add(squares, epsilon))), weight_and_bias...);
        });
  }

  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return call_op(RowNormSlope<Centers>{{}, epsilon}, g, resolve(x));
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x, const auto& weight,
                          const auto&...) const {
    return call_op(RowNormSlope<Centers>{{}, epsilon}, g, resolve(x), weight);
  }
  template <class X>
  constexpr auto gradient(wrt<1>, const auto& g, const auto&, const X& x, const auto&,
                          const auto&...) const {
    return cleave::detail::in_accumulator(x, [&](const auto& rows) {
      using A = accumulator_t<typename X::value_type>;
      return cleave::detail::summed_over<cleave::detail::leading_mask<X>>(
          mul(cleave::detail::in_type<A>(g), call_op(RowNorm{{}, epsilon}, rows)));
    });
  }
  template <class X>
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const X&, const auto&,
                                 const auto&) {
    return cleave::detail::summed_over<cleave::detail::leading_mask<X>>(g);
  }

 private:
  static constexpr auto weighted(const auto& x) { return x; }
  static constexpr auto weighted(const auto& x, const auto& weight) { return mul(x, weight); }
  static constexpr auto weighted(const auto& x, const auto& weight, const auto& bias) {
    return add(mul(x, weight), bias);
  }
};

}  // namespace ops

namespace detail {

template <bool Centers, class... R, class X, class... Affine>
constexpr auto row_norm(double epsilon, const X& x, const Affine&... affine) {
  using T = typename X::value_type;
  require_real<X>();
  static_assert(X::dims > 0 && ((Affine::dims == 1) && ...),
                "cleave: layer_norm and rms_norm take x [.., n], a weight [n] and a bias [n]");
  static_assert(
      (std::is_same_v<typename Affine::value_type, T> && ...),
      "cleave: the weight and the bias of a norm must have the element type of x; cast them");
  using A = accumulator_t<T>;
  const ops::RowNorm<Centers> op{{}, epsilon};
  if constexpr (std::is_same_v<A, T> || norms_sixteen_bits<X>())
    return call_op<R...>(op, x, affine...);
  else return cast<T>(call_op<R...>(op, cast<A>(x), cast<A>(affine)...));
}

}  // namespace detail

/// Options of layer_norm: epsilon is added to the variance of a row.
struct LayerNormOptions {
  double epsilon = 1e-5;
};

/// Layer norm: normalises rows along the last dimension to mean 0 and variance 1, times `weight`,
/// plus `bias`: `layer_norm(x, weight, bias, {.epsilon = 1e-6})`.
///
/// @param x       [.., n]; 16-bit elements are computed in float
/// @param weight  [n]; may be omitted together with the bias
/// @param bias    [n]; may be omitted
/// @return        [.., n]
/// @collective    every rank of the mesh, if rows are sharded: two all-reduces of one number per
///                row, four for a gradient; no gather. Partial operands are resolved first
template <class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto layer_norm(const X& x, const W& weight, const B& bias,
                          LayerNormOptions options = {}) {
  return detail::row_norm<true, R...>(options.epsilon, x, weight, bias);
}
template <class... R, AnyTensor X>
constexpr auto layer_norm(const X& x, LayerNormOptions options = {}) {
  return detail::row_norm<true, R...>(options.epsilon, x);
}
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto layer_norm(const X& x, const W& weight, LayerNormOptions options = {}) {
  return detail::row_norm<true, R...>(options.epsilon, x, weight);
}
CLEAVE_USAGE(layer_norm, "layer_norm(x), layer_norm(x, weight, bias)")

/// Options of rms_norm: epsilon is added to the mean square of a row.
struct RmsNormOptions {
  double epsilon = 1e-6;
};

/// RMS norm: divides rows along the last dimension by their root mean square, then multiplies by
/// `weight`.
///
/// @param weight  [n]; may be omitted
/// @collective    as layer_norm, with one all-reduce, two for a gradient
template <class... R, AnyTensor X, AnyTensor W>
constexpr auto rms_norm(const X& x, const W& weight, RmsNormOptions options = {}) {
  return detail::row_norm<false, R...>(options.epsilon, x, weight);
}
template <class... R, AnyTensor X>
constexpr auto rms_norm(const X& x, RmsNormOptions options = {}) {
  return detail::row_norm<false, R...>(options.epsilon, x);
}
CLEAVE_USAGE(rms_norm, "rms_norm(x), rms_norm(x, weight)")

}  // namespace cleave::inline v0
