// softmax and log_softmax over a dimension, sharded or not. If it is sharded, two reductions of one
// number per row replace a gather; if it is not, one kernel computes whole rows.
#pragma once

#include <type_traits>

#include <cleave/kernels/host/whole_rows.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// dL/dx of y = softmax(x), y · (g - sum(g · y)), or of its logarithm, g - exp(y) · sum(g),
/// composed of operations.
template <int D, bool Logarithm>
constexpr auto softmax_gradient_of_parts(const auto& g, const auto& y) {
  if constexpr (Logarithm) {
    const auto total = resolve(sum(g, dim<D>{}));
    return sub(g, mul(exp(y), unsqueeze(total, dim<D>{})));
  } else {
    const auto total = resolve(sum(mul(g, y), dim<D>{}));
    return mul(y, sub(g, unsqueeze(total, dim<D>{})));
  }
}

}  // namespace detail

namespace ops {

/// The gradient of softmax, or of its logarithm, on a GPU over a dimension that is not sharded.
template <int D, bool Logarithm>
struct SoftmaxSlopeOfRows {
  static constexpr const char* name = Logarithm ? "log_softmax" : "softmax";
  static constexpr RuleText replicated = detail::dim_letters(D, D + 1);
  static constexpr auto factors = Elementwise::factors<2>;
  template <class T>
  static void kernel(const auto& on, const Task&, const kernels::Strided<T>& dx,
                     const kernels::Strided<const T>& g, const kernels::Strided<const T>& y) {
    softmax_slopes(on, std::bool_constant<Logarithm>{}, g, y, D, dx);
  }
};

/// The same for any device and placements.
template <int D, bool Logarithm>
struct SoftmaxSlope : CompositeByPlacement {
  static constexpr const char* name = SoftmaxSlopeOfRows<D, Logarithm>::name;
  template <class G, class Y>
  static constexpr auto body(const G& g, const Y& y) {
    const auto parts = [&](const auto& rows) {
      return detail::softmax_gradient_of_parts<D, Logarithm>(g, rows);
    };
    if constexpr (detail::is_on_host<Y>) return parts(y);
    else
      return detail::by_rows<D>(
          y, [&](const auto& rows) { return call_op(SoftmaxSlopeOfRows<D, Logarithm>{}, g, rows); },
          parts, g);
  }
};

}  // namespace ops

namespace detail {

/// dL/dx of y = softmax(x), or of its logarithm.
template <int D, bool Logarithm = false>
constexpr auto softmax_gradient(const auto& g, const auto& y) {
  if constexpr (is_on_host<decltype(y)>) return softmax_gradient_of_parts<D, Logarithm>(g, y);
  else return call_op(ops::SoftmaxSlope<D, Logarithm>{}, g, y);
}

}  // namespace detail

namespace ops {

/// softmax, or its logarithm, over a dimension that is not sharded, row by row.
template <int D, bool Logarithm>
struct SoftmaxOfRows {
  static constexpr const char* name = Logarithm ? "log_softmax" : "softmax";
  static constexpr RuleText replicated = detail::dim_letters(D, D + 1);
  static constexpr auto factors = Elementwise::factors<1>;
  template <class T>
  static void kernel(const auto& on, const Task&, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x) {
    softmax_rows(on, std::bool_constant<Logarithm>{}, x, D, y);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return detail::softmax_gradient<D, Logarithm>(g, y);
  }
};

/// exp(x) / sum(exp(x)), or its logarithm, shifted by the largest element to avoid overflow.
template <int D, bool Logarithm>
struct SoftmaxAlong : CompositeByPlacement {
  static constexpr const char* name = Logarithm ? "log_softmax" : "softmax";
  static constexpr auto body(const auto& logits) {
    return detail::by_rows<D>(
        resolve(logits), [](const auto& x) { return call_op(SoftmaxOfRows<D, Logarithm>{}, x); },
        [](const auto& x) {
          const auto largest = resolve(max(x, dim<D>{}));
          if constexpr (Logarithm) {
            const auto shifted = sub(x, unsqueeze(largest, dim<D>{}));
            const auto total = resolve(sum(exp(shifted), dim<D>{}));
            return sub(shifted, unsqueeze(log(total), dim<D>{}));
          } else {
            const auto weights = exp(sub(x, unsqueeze(largest, dim<D>{})));
            const auto total = resolve(sum(weights, dim<D>{}));
            return div(weights, unsqueeze(total, dim<D>{}));
          }
        });
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return detail::softmax_gradient<D, Logarithm>(g, y);
  }
};
template <int D>
using Softmax = SoftmaxAlong<D, false>;
template <int D>
using LogSoftmax = SoftmaxAlong<D, true>;

}  // namespace ops

/// The logarithm of softmax over a dimension: x - log(sum(exp(x))).
///
/// @collective every rank of the mesh, if the dimension is sharded: two all-reduces of one number
///             per row; nothing is gathered. Partial operands are resolved first
template <class... R, AnyTensor X, int D>
constexpr auto log_softmax(const X& x, dim<D>) {
  detail::require_real<X>();
  return call_op<R...>(ops::LogSoftmax<detail::dim_index<X::dims>(dim<D>{})>{}, x);
}
CLEAVE_USAGE(log_softmax, "log_softmax(x, dim<0>{})")

/// Softmax over a dimension: exp(x) / sum(exp(x)). Communicates as log_softmax.
template <class... R, AnyTensor X, int D>
constexpr auto softmax(const X& x, dim<D>) {
  detail::require_real<X>();
  return call_op<R...>(ops::Softmax<detail::dim_index<X::dims>(dim<D>{})>{}, x);
}
CLEAVE_USAGE(softmax, "softmax(x, dim<0>{})")

}  // namespace cleave::inline v0
