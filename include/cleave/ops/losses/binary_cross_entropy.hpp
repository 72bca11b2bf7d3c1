// Binary cross-entropy of probabilities and of logits, as PyTorch defines it.
//
//     // loss[P] = binary_cross_entropy(p[S0], targets[S0])      no communication
#pragma once

#include <cmath>
#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/losses/mse_loss.hpp>

namespace cleave::inline v0 {

namespace detail {

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

}  // namespace detail

namespace ops {

template <Reduction By>
struct BinaryCrossEntropy : Composite {
  static constexpr const char* name = "binary_cross_entropy";
  static constexpr auto body(const auto& chances, const auto& targets) {
    return cleave::detail::reduced_loss<By>(
        call_op(cleave::detail::BinaryCrossEntropyTerm{}, chances, targets));
  }
};

template <Reduction By>
struct BinaryCrossEntropyWithLogits : Composite {
  static constexpr const char* name = "binary_cross_entropy_with_logits";
  static constexpr auto body(const auto& logits, const auto& targets) {
    return cleave::detail::reduced_loss<By>(
        call_op(cleave::detail::LogitCrossEntropyTerm{}, logits, targets));
  }
};

}  // namespace ops

/// Binary cross-entropy of probabilities p: -(t log(p) + (1 - t) log(1 - p)). Logarithms are at
/// least -100; in gradients, p (1 - p) is at least 1e-12. Otherwise as mse_loss.
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor Y>
constexpr auto binary_cross_entropy(const X& chances, const Y& targets) {
  detail::require_targets<X, Y>();
  return call_op<R...>(ops::BinaryCrossEntropy<By>{}, chances, targets);
}
CLEAVE_USAGE(binary_cross_entropy, "binary_cross_entropy(chances, targets)")

/// Binary cross-entropy of sigmoid(logits), without the rounding errors of the probabilities.
template <Reduction By = Reduction::mean, class... R, AnyTensor X, AnyTensor Y>
constexpr auto binary_cross_entropy_with_logits(const X& logits, const Y& targets) {
  detail::require_targets<X, Y>();
  return call_op<R...>(ops::BinaryCrossEntropyWithLogits<By>{}, logits, targets);
}
CLEAVE_USAGE(binary_cross_entropy_with_logits, "binary_cross_entropy_with_logits(logits, targets)")

}  // namespace cleave::inline v0
