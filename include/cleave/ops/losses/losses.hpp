// Losses between predictions and targets of the same extents, as PyTorch defines them.
//
//     // loss[P] = mse_loss(x[S0], y[S0])      no communication
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave {

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

/// -(t log(p) + (1 - t) log(1 - p)); logarithms are at least -100.
struct BinaryCrossEntropyTerm : Elementwise {
  static constexpr const char* name = "binary_cross_entropy";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& p, const T& t) const {
    using A = accumulator_t<T>;
    const A chance = A(p), target = A(t);
    return T(-(target * bounded_log(chance) + (A(1) - target) * bounded_log(A(1) - chance)));
  }
  template <class A>
  CLEAVE_HOST_DEVICE static A bounded_log(const A& a) {
    return kernels::larger(kernels::logarithm(a), A(-100));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& p, const auto& t) {
    using T = typename std::remove_cvref_t<decltype(p)>::value_type;
    const auto spread = maximum(mul(p, sub(1, p)), T(1e-12f));
    return mul(g, div(sub(p, t), spread));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& p, const auto&) {
    return mul(g, sub(maximum(log(sub(1, p)), -100), maximum(log(p), -100)));
  }
};

/// -(t log(p) + (1 - t) log(1 - p)) for p = sigmoid(z), without overflow.
struct LogitCrossEntropyTerm : Elementwise {
  static constexpr const char* name = "binary_cross_entropy_with_logits";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& z, const T& t) const {
    using A = accumulator_t<T>;
    const A logit = A(z), target = A(t);
    const A size = logit < A(0) ? -logit : logit;
    const A above = logit < A(0) ? A(0) : logit;
    return T(above - logit * target + A(std::log1p(kernels::exponential(-size))));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& z, const auto& t) {
    return mul(g, sub(sigmoid(z), t));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& z, const auto&) {
    return neg(mul(g, z));
  }
};

template <Reduction By>
struct MseLoss : Composite {
  static constexpr const char* name = "mse_loss";
  static constexpr auto body(const auto& x, const auto& targets) {
    return cleave::detail::reduced_loss<By>(square(sub(x, targets)));
  }
};

template <Reduction By>
struct BinaryCrossEntropy : Composite {
  static constexpr const char* name = "binary_cross_entropy";
  static constexpr auto body(const auto& chances, const auto& targets) {
    return cleave::detail::reduced_loss<By>(call_op(BinaryCrossEntropyTerm{}, chances, targets));
  }
};

template <Reduction By>
struct BinaryCrossEntropyWithLogits : Composite {
  static constexpr const char* name = "binary_cross_entropy_with_logits";
  static constexpr auto body(const auto& logits, const auto& targets) {
    return cleave::detail::reduced_loss<By>(call_op(LogitCrossEntropyTerm{}, logits, targets));
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

/// Binary cross-entropy of probabilities p: -(t log(p) + (1 - t) log(1 - p)). Logarithms are at
/// least -100; in gradients, p (1 - p) is at least 1e-12. Otherwise as mse_loss.
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor Y>
constexpr auto binary_cross_entropy(const X& chances, const Y& targets) {
  detail::require_targets<X, Y>();
  return call_op<R...>(ops::BinaryCrossEntropy<By>{}, chances, targets);
}

/// Binary cross-entropy of sigmoid(logits), without the rounding errors of the probabilities.
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor Y>
constexpr auto binary_cross_entropy_with_logits(const X& logits, const Y& targets) {
  detail::require_targets<X, Y>();
  return call_op<R...>(ops::BinaryCrossEntropyWithLogits<By>{}, logits, targets);
}

}  // namespace cleave
