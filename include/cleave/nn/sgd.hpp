// Stochastic gradient descent, without and with momentum. Definitions are PyTorch's.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/nn/update.hpp>

namespace cleave::nn {

struct SgdOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
};

namespace detail {

struct SgdRule {
  double rate, decay;

  template <class T>
  void operator()(index_t n, T* __restrict p, const T* __restrict g) const {
    using A = accumulator_t<T>;
    const A lr = A(rate), wd = A(decay);
    for (index_t i = 0; i < n; ++i) p[i] = T(A(p[i]) - lr * (A(g[i]) + wd * A(p[i])));
  }
};

}  // namespace detail

/// p -= rate (g + decay p)
struct Sgd {
  SgdOptions options;
  static constexpr names members{"options"};

  /// Updates every parameter that has a gradient, in place: each rank its own elements.
  /// @collective none
  template <class M>
  void step(const M& m) {
    for (const Trained& p : trained_parameters(m))
      if (p.has_gradient)
        detail::update("sgd", p, detail::SgdRule{options.learning_rate, options.weight_decay});
  }
};
inline Sgd sgd(const SgdOptions& options) { return {options}; }

struct MomentumOptions {
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

namespace detail {

struct MomentumRule {
  MomentumOptions options;
  bool is_first;

  template <class T>
  void operator()(index_t n, T* __restrict p, const T* __restrict g, T* __restrict v) const {
    using A = accumulator_t<T>;
    const A lr = A(options.learning_rate), wd = A(options.weight_decay);
    const A keep = is_first ? A(0) : A(options.momentum);
    const A take = is_first ? A(1) : A(1 - options.dampening);
    const A ahead = options.nesterov ? A(options.momentum) : A(1);
    const A own = options.nesterov ? A(1) : A(0);
    for (index_t i = 0; i < n; ++i) {
      const A slope = A(g[i]) + wd * A(p[i]);
      const A velocity = keep * A(v[i]) + take * slope;
      v[i] = T(velocity);
      p[i] = T(A(p[i]) - lr * (own * slope + ahead * velocity));
    }
  }
};

}  // namespace detail

/// v = momentum v + (1 - dampening) (g + decay p), the first v without dampening; p -= rate v.
/// @tparam State  a module with the names, types and placements of the trained parameters
template <class State>
struct MomentumSgd {
  State momentum_buffer;
  Buffer<Tensor<index_t, 1>> steps;  ///< one per trained parameter
  MomentumOptions options;
  static constexpr names members{"momentum_buffer", "steps", "options"};

  /// @collective none
  /// @throws Error if the module has another number of trained parameters than the optimizer
  template <class M>
  void step(const M& m) {
    const std::vector<Trained> list = trained_parameters(m);
    const std::vector<View> velocity = detail::views_of(momentum_buffer);
    detail::require_equal_counts("momentum_sgd", list.size(), velocity.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].has_gradient) continue;
      const bool is_first = steps.value(index_t(i))++ == 0;
      detail::update("momentum_sgd", list[i], detail::MomentumRule{options, is_first}, velocity[i]);
    }
  }
};

namespace detail {

/// One zero per parameter of a module of optimizer state.
template <class State>
Tensor<index_t, 1> step_counts(const State& state) {
  Tensor<index_t, 1> counts({index_t(views_of(state).size())});
  counts.fill_(0);
  return counts;
}

}  // namespace detail

template <class M>
auto momentum_sgd(const M& m, const MomentumOptions& options) {
  auto state = zeros_like_trained(m);
  const auto steps = detail::step_counts(state);
  return MomentumSgd<decltype(state)>{state, {steps}, options};
}

}  // namespace cleave::nn
