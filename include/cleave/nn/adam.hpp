// Adam and AdamW. Definitions are PyTorch's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/host/vector_math.hpp>
#include <cleave/nn/sgd.hpp>
#include <cleave/nn/traced_step.hpp>
#include <cleave/nn/update.hpp>

namespace cleave::inline v0::nn {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

namespace detail {

template <class A>
void square_roots(A* x, index_t n) {
  if constexpr (kernels::has_row_functions<A>) {
    apply_to_row(kernels::RowFunctionId::sqrt, x, x, n);
  } else {
    for (index_t i = 0; i < n; ++i) x[i] = std::sqrt(x[i]);
  }
}

template <class T>
struct AdamStep {
  using A = accumulator_t<T>;
  A rate, scale;  ///< corrected for the start of the averages
  A beta1, rest1, beta2, rest2, epsilon;
  A kept;   ///< factor of the parameter
  A added;  ///< multiple of the parameter that is added to its gradient

  CLEAVE_HOST_DEVICE void operator()(T& p, const T& g, T& m, T& v) const {
    A mean = A(m), square = A(v);
    average(A(p), A(g), mean, square);
    m = T(mean);
    v = T(square);
    p = T(moved(A(p), A(m), A(std::sqrt(square))));
  }
  bool operator==(const AdamStep&) const = default;

  /// The same for n elements on the host: many square roots at a time.
  void row(index_t n, T* __restrict p, const T* __restrict g, T* __restrict m,
           T* __restrict v) const {
    constexpr index_t at_once = 1024;
    A roots[std::size_t(at_once)];
    const AdamStep own = *this;  // in registers: no array overlaps it
    for (index_t begin = 0; begin < n; begin += at_once) {
      const index_t end = std::min(n, begin + at_once);
      for (index_t i = begin; i < end; ++i) {
        A mean = A(m[i]), square = A(v[i]);
        own.average(A(p[i]), A(g[i]), mean, square);
        m[i] = T(mean);
        v[i] = T(square);
        roots[i - begin] = square;
      }
      square_roots(roots, end - begin);
      for (index_t i = begin; i < end; ++i) p[i] = T(own.moved(A(p[i]), A(m[i]), roots[i - begin]));
    }
  }

 private:
  /// Updates the averages of gradients and of their squares.
  CLEAVE_HOST_DEVICE void average(A p, A g, A& mean, A& square) const {
    const A slope = g + added * p;
    mean = beta1 * mean + rest1 * slope;
    square = beta2 * square + rest2 * slope * slope;
  }
  CLEAVE_HOST_DEVICE A moved(A p, A mean, A root) const {
    return kept * p - rate * mean / (root * scale + epsilon);
  }
};

/// @tparam Decoupled  weight decay scales the parameter instead of adding to its gradient
template <bool Decoupled>
struct AdamRule {
  AdamOptions options;
  double rate;   ///< the learning rate, corrected for the start of the average of gradients
  double scale;  ///< the factor of the root of the average of squares, likewise

  /// @param count  of steps, this one included
  AdamRule(const AdamOptions& of, index_t count)
      : options(of),
        rate(of.learning_rate / (1 - std::pow(of.beta1, double(count)))),
        scale(1 / std::sqrt(1 - std::pow(of.beta2, double(count)))) {}

  template <class T>
  AdamStep<T> step() const {
    using A = accumulator_t<T>;
    const double decay = options.weight_decay;
    return {A(rate),
            A(scale),
            A(options.beta1),
            A(1 - options.beta1),
            A(options.beta2),
            A(1 - options.beta2),
            A(options.epsilon),
            Decoupled ? A(1 - options.learning_rate * decay) : A(1),
            Decoupled ? A(0) : A(decay)};
  }
};

/// The same in programs; the count of steps includes this one. @see ops::OptimizerStep
template <bool Decoupled>
struct TracedAdamRule {
  double beta1, beta2, epsilon, weight_decay;
  index_t index;  ///< of the parameter among the counts

  static constexpr const char* name = "adam";
  static constexpr bool counts = true;
  template <class T>
  AdamStep<T> step(double learning_rate, index_t count) const {
    return AdamRule<Decoupled>(AdamOptions{learning_rate, beta1, beta2, epsilon, weight_decay},
                               count)
        .template step<T>();
  }
};

}  // namespace detail

/// Moving averages of gradients and of their squares; p -= rate mean / sqrt(square).
/// @tparam State  a module with the names, types and placements of the trained parameters
template <class State, class Steps = Buffer<Tensor<index_t, 1>>, class Decoupled = std::false_type,
          class Options = AdamOptions>
struct Adam {
  State exp_avg, exp_avg_sq;
  Steps steps;  ///< one per trained parameter
  Options options;
  static constexpr names members{"exp_avg", "exp_avg_sq", "steps", "options"};

  /// Updates every parameter that has a gradient, in place: each rank its own elements.
  /// @collective none
  /// @throws Error if the module has another number of trained parameters than the optimizer
  template <class M>
  void step(const M& m) const {
    if constexpr (detail::is_traced_module<M>) {
      if constexpr (detail::require_traced<Steps>()) trace_step(m);
    } else {
      const auto rule_of = [&](std::size_t i) {
        return detail::AdamRule<Decoupled::value>(options, ++steps.value(index_t(i)));
      };
      detail::update_all("adam", trained_parameters(m), rule_of, detail::views_of(exp_avg),
                         detail::views_of(exp_avg_sq));
    }
  }

 private:
  template <class M>
  void trace_step(const M& m) const {
    const auto mean = detail::traced_states(exp_avg), square = detail::traced_states(exp_avg_sq);
    const auto has_gradient = detail::has_gradients(m);
    detail::require_equal_counts("adam", has_gradient.size(), mean.size());
    detail::count_steps(steps.value, has_gradient);
    detail::each_gradient(m, [&](const auto& x, const auto& gradient, std::size_t i) {
      const detail::TracedAdamRule<Decoupled::value> rule{
          options.beta1, options.beta2, options.epsilon, options.weight_decay, index_t(i)};
      detail::trace_update(rule, options, steps.value, x, gradient,
                           detail::state_of("adam", mean[i], x),
                           detail::state_of("adam", square[i], x));
    });
  }
};

namespace detail {

template <class Decoupled, class M>
auto make_adam(const M& m, const AdamOptions& options) {
  auto mean = zeros_like_trained(m);
  auto square = zeros_like_trained(m);
  const auto steps = step_counts(mean);
  return Adam<decltype(mean), Buffer<Tensor<index_t, 1>>, Decoupled>{
      mean, square, {steps}, options};
}

}  // namespace detail

/// Adam: weight decay adds to the gradient.
template <class M>
auto adam(const M& m, const AdamOptions& options) {
  return detail::make_adam<std::false_type>(m, options);
}
/// AdamW: weight decay scales the parameter itself. PyTorch's default decay is 0.01.
template <class M>
auto adamw(const M& m, const AdamOptions& options) {
  return detail::make_adam<std::true_type>(m, options);
}

}  // namespace cleave::inline v0::nn
