// Classification losses with PyTorch's options: ignored rows, label smoothing, losses per row. The
// plain mean is in cross_entropy.hpp.
//
//     // loss[P,R] = nll_loss(y[S0,S1], classes[S0,R])      nothing is gathered
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

template <Reduction By, class Losses, class C>
constexpr auto reduced_rows(const Losses& losses, const C& classes, const ClassLoss& options) {
  using T = typename Losses::value_type;
  if constexpr (By == Reduction::none) return losses;
  else if constexpr (By == Reduction::sum) return sum(losses);
  else {
    const auto counted = sum(call_op(IsCounted{{}, options.ignore_index}, classes));
    return div(sum(losses), cast<T>(resolve(counted)));
  }
}

}  // namespace detail

namespace ops {

template <Reduction By>
struct NllLoss : Composite {
  ClassLoss options{};

  static constexpr const char* name = "nll_loss";
  constexpr auto body(const auto& y, const auto& classes) const {
    return cleave::detail::reduced_rows<By>(cleave::detail::row_losses(y, classes, options),
                                            classes, options);
  }
};

template <Reduction By>
struct ClassCrossEntropy : Composite {
  ClassLoss options{};

  static constexpr const char* name = "cross_entropy";
  constexpr auto body(const auto& logits, const auto& classes) const {
    return cleave::detail::reduced_rows<By>(cleave::detail::class_losses(logits, classes, options),
                                            classes, options);
  }
};

}  // namespace ops

namespace detail {

template <class X, class C>
constexpr void require_classes(const char* name, const X& x, const ClassLoss& options) {
  using I = typename C::value_type;
  require_real<X>();
  static_assert(X::dims == 2 && C::dims == 1 && std::is_integral_v<I> && !std::is_same_v<I, bool>,
                "cleave: this loss takes real numbers [n, c] and integer classes [n]");
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw Error(name,
                "label_smoothing must be in [0, 1], not " + std::to_string(options.label_smoothing),
                context_of(x));
}

}  // namespace detail

/// Negative log-likelihood loss, -y[n, classes[n]] for log-probabilities y: per row, summed, or the
/// mean over the rows that count: `nll_loss<Reduction::none>(y, classes, {.ignore_index = 0})`.
///
/// @param y        [n, c]; rows and classes may be sharded
/// @param classes  [n], integers in [0, c), or ignore_index (by default -100) for ignored rows
/// @return         for `none` [n], 0 where a row does not count; otherwise a scalar, for `mean` NaN
///                 if no row counts. Partial<Sum> on the axes that shard summed dimensions
/// @collective     every rank of the mesh, if an operand has to be redistributed; for the mean also
///                 if rows are sharded, to count them
/// @throws Error   on the ranks that hold another index outside [0, c)
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor C>
constexpr auto nll_loss(const X& y, const C& classes, ClassLoss options = {}) {
  options.label_smoothing = 0;
  detail::require_classes<X, C>("nll_loss", y, options);
  return call_op<R...>(ops::NllLoss<By>{{}, options}, y, classes);
}
CLEAVE_USAGE(nll_loss, "nll_loss(y, classes), nll_loss<Reduction::none>(y, classes)")

/// Cross-entropy loss, nll_loss of log_softmax(logits), where every class receives
/// label_smoothing / c of the target:
/// `cross_entropy<Reduction::mean>(logits, classes, {.label_smoothing = 0.1})`.
///
/// @collective     every rank of the mesh, if classes are sharded: two all-reduces of one number
///                 per row; otherwise as nll_loss
/// @throws Error   as nll_loss, and if label_smoothing is not in [0, 1]
template <Reduction By, class... R, AnyTensor X, AnyTensor C>
constexpr auto cross_entropy(const X& logits, const C& classes, const ClassLoss& options = {}) {
  detail::require_classes<X, C>("cross_entropy", logits, options);
  return call_op<R...>(ops::ClassCrossEntropy<By>{{}, options}, logits, classes);
}

}  // namespace cleave::inline v0
