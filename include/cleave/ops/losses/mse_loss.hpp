// The squared error, and how losses are reduced.
//
//     // loss[P] = mse_loss(x[S0], y[S0])      no communication
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

/// How the losses of single elements are reduced.
enum class Reduction { none, mean, sum };

namespace detail {

template <Reduction By, class X>
constexpr auto reduced_loss(const X& losses) {
  if constexpr (By == Reduction::none) return losses;
  else if constexpr (By == Reduction::sum) return sum(losses);
  else return mean(losses);
}

template <class X, class Y>
constexpr void require_targets() {
  require_real<X>();
  static_assert(
      X::dims == Y::dims && std::is_same_v<typename X::value_type, typename Y::value_type>,
      "cleave: a loss requires predictions and targets of the same extents and element type");
}

}  // namespace detail

namespace ops {

template <Reduction By>
struct MseLoss : Composite {
  static constexpr const char* name = "mse_loss";
  static constexpr auto body(const auto& x, const auto& targets) {
    return cleave::detail::reduced_loss<By>(square(sub(x, targets)));
  }
};

}  // namespace ops

/// Squared error (x - target)², per element, its mean or its sum: `mse_loss<Reduction::sum>(x, y)`.
///
/// @return     for `mean` and `sum` a scalar, Partial<Sum> on the axes that shard x; the mean of no
///             elements is NaN
/// @collective every rank of the mesh, if the placements of the operands differ, or one is Partial
/// @throws Error if the extents differ
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor Y>
constexpr auto mse_loss(const X& x, const Y& targets) {
  detail::require_targets<X, Y>();
  return call_op<R...>(ops::MseLoss<By>{}, x, targets);
}
CLEAVE_USAGE(mse_loss, "mse_loss(x, y), mse_loss<Reduction::sum>(x, y)")

}  // namespace cleave::inline v0
