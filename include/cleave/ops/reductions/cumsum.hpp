// Cumulative sums along a dimension, which must not be sharded.
//
//     // y[S0] = cumsum(x[S0], dim<1>{})
//     // y[S0] = cumsum(x[S1], dim<1>{})      an all-to-all of x first
#pragma once

#include <type_traits>

#include <cleave/kernels/host/running_sums.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave {

namespace ops {

/// y[i] = x[0] + .. + x[i] along dimension D; if reversed, the sum from x[i] to the end. Bools are
/// counted.
template <int D>
struct CumSum {
  bool reversed = false;

  static constexpr const char* name = "cumsum";
  template <class T>
  using result_of = std::conditional_t<std::is_same_v<T, bool>, index_t, T>;
  template <class T>
  static constexpr const char* partials_for() {
    return std::is_same_v<T, bool> ? "" : "sum->sum; avg->avg";
  }
  static constexpr auto factors = cleave::detail::reduction_factors<0>;
  static constexpr RuleText replicated = cleave::detail::letter_of(D);
  void kernel(const auto& on, const Task&, const auto& y, const auto& x) const {
    running_sums(on, x, D, reversed, y);
  }
  // x[i] contributes to y[i], y[i + 1], ..
  template <class G, class Y, class X>
    requires(!std::is_integral_v<typename X::value_type>)
  constexpr auto gradient(wrt<0>, const G& g, const Y&, const X&) const {
    return call_op(CumSum{!reversed}, g);
  }
};

}  // namespace ops

/// Cumulative sums along a dimension: y[i] = x[0] + .. + x[i]. Integers wrap; bools are counted.
///
/// @return     the shape of x, not sharded along D; int64 for bools
/// @collective every rank of the mesh, if the dimension is sharded: an all-to-all, if another
///             dimension can be sharded instead
template <class... R, AnyTensor X, int D>
constexpr auto cumsum(const X& x, dim<D>) {
  return call_op<R...>(ops::CumSum<detail::dim_index<X::dims>(dim<D>{})>{}, x);
}
CLEAVE_USAGE(cumsum, "cumsum(x, dim<0>{})")

}  // namespace cleave
