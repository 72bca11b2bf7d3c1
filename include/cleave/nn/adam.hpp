// Adam and AdamW. Definitions are PyTorch's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <cleave/kernels/host/vector_math.hpp>
#include <cleave/nn/sgd.hpp>
#include <cleave/nn/update.hpp>

namespace cleave::nn {

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

/// @tparam Decoupled  weight decay scales the parameter instead of adding to its gradient
template <bool Decoupled>
struct AdamRule {
  AdamOptions options;
  index_t step;  ///< counted from 1

  template <class T>
  void operator()(index_t n, T* __restrict p, const T* __restrict g, T* __restrict m,
                  T* __restrict v) const {
    using A = accumulator_t<T>;
    const double first = 1 - std::pow(options.beta1, double(step));
    const double second = std::sqrt(1 - std::pow(options.beta2, double(step)));
    const A rate = A(options.learning_rate / first), scale = A(1 / second);
    const A b1 = A(options.beta1), b2 = A(options.beta2), eps = A(options.epsilon);
    const A rest1 = A(1 - options.beta1), rest2 = A(1 - options.beta2);
    const A kept = Decoupled ? A(1 - options.learning_rate * options.weight_decay) : A(1);
    const A added = Decoupled ? A(0) : A(options.weight_decay);
    constexpr index_t at_once = 1024;
    A roots[std::size_t(at_once)];
    for (index_t begin = 0; begin < n; begin += at_once) {
      const index_t end = std::min(n, begin + at_once);
      for (index_t i = begin; i < end; ++i) {
        const A slope = A(g[i]) + added * A(p[i]);
        const A square = b2 * A(v[i]) + rest2 * slope * slope;
        m[i] = T(b1 * A(m[i]) + rest1 * slope);
        v[i] = T(square);
        roots[i - begin] = square;
      }
      square_roots(roots, end - begin);
      for (index_t i = begin; i < end; ++i)
        p[i] = T(kept * A(p[i]) - rate * A(m[i]) / (roots[i - begin] * scale + eps));
    }
  }
};

}  // namespace detail

/// Moving averages of gradients and of their squares; p -= rate mean / sqrt(square).
/// @tparam State  a module with the names, types and placements of the trained parameters
template <class State, class Decoupled = std::false_type>
struct Adam {
  State exp_avg, exp_avg_sq;
  Buffer<Tensor<index_t, 1>> steps;  ///< one per trained parameter
  AdamOptions options;
  static constexpr names members{"exp_avg", "exp_avg_sq", "steps", "options"};

  /// Updates every parameter that has a gradient, in place: each rank its own elements.
  /// @collective none
  /// @throws Error if the module has another number of trained parameters than the optimizer
  template <class M>
  void step(const M& m) {
    const std::vector<Trained> list = trained_parameters(m);
    const std::vector<View> mean = detail::views_of(exp_avg), square = detail::views_of(exp_avg_sq);
    detail::require_equal_counts("adam", list.size(), mean.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].has_gradient) continue;
      const index_t step = ++steps.value(index_t(i));
      detail::update("adam", list[i], detail::AdamRule<Decoupled::value>{options, step}, mean[i],
                     square[i]);
    }
  }
};

namespace detail {

template <class Decoupled, class M>
auto make_adam(const M& m, const AdamOptions& options) {
  auto mean = zeros_like_trained(m);
  auto square = zeros_like_trained(m);
  const auto steps = step_counts(mean);
  return Adam<decltype(mean), Decoupled>{mean, square, {steps}, options};
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

}  // namespace cleave::nn
