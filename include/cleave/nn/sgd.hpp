// Stochastic gradient descent, without and with momentum. Definitions are PyTorch's.
#pragma once

#include <cstddef>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/nn/traced_step.hpp>
#include <cleave/nn/update.hpp>

namespace cleave::inline v0::nn {

struct SgdOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;  ///< adds weight_decay · parameter to the gradient
};

namespace detail {

template <class T>
struct SgdStep {
  using A = accumulator_t<T>;
  A rate, decay;

  CLEAVE_HOST_DEVICE void operator()(T& p, const T& g) const {
    p = T(A(p) - rate * (A(g) + decay * A(p)));
  }
  bool operator==(const SgdStep&) const = default;
};

struct SgdRule {
  SgdOptions options;

  template <class T>
  SgdStep<T> step() const {
    using A = accumulator_t<T>;
    return {A(options.learning_rate), A(options.weight_decay)};
  }
};

/// The same in programs. @see ops::OptimizerStep
struct TracedSgdRule {
  double weight_decay;

  static constexpr const char* name = "sgd";
  static constexpr bool counts = false;
  template <class T>
  SgdStep<T> step(double learning_rate) const {
    return SgdRule{{learning_rate, weight_decay}}.step<T>();
  }
};

}  // namespace detail

/// p -= rate (g + decay p)
template <class Options = SgdOptions>
struct Sgd {
  Options options;
  static constexpr names members{"options"};

  /// Updates every parameter that has a gradient, in place: each rank its own elements.
  /// @collective none
  template <class M>
  void step(const M& m) const {
    if constexpr (detail::is_traced_module<M>) {
      detail::each_gradient(m, [&](const auto& x, const auto& gradient, std::size_t) {
        detail::trace_update(detail::TracedSgdRule{options.weight_decay}, options, None{}, x,
                             gradient);
      });
    } else {
      detail::update_all("sgd", trained_parameters(m),
                         [&](std::size_t) { return detail::SgdRule{options}; });
    }
  }
};
inline Sgd<> sgd(const SgdOptions& options) { return {options}; }

struct MomentumOptions {
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

namespace detail {

template <class T>
struct MomentumStep {
  using A = accumulator_t<T>;
  A rate, decay;
  A keep, take;  ///< of the velocity: its factor, that of the gradient
  A ahead, own;  ///< of the update: the factor of the velocity, that of the gradient

  CLEAVE_HOST_DEVICE void operator()(T& p, const T& g, T& v) const {
    const A slope = A(g) + decay * A(p);
    const A velocity = keep * A(v) + take * slope;
    v = T(velocity);
    p = T(A(p) - rate * (own * slope + ahead * velocity));
  }
  bool operator==(const MomentumStep&) const = default;
};

struct MomentumRule {
  MomentumOptions options;
  bool is_first;

  template <class T>
  MomentumStep<T> step() const {
    using A = accumulator_t<T>;
    const double keep = is_first ? 0 : options.momentum;
    const double take = is_first ? 1 : 1 - options.dampening;
    const double ahead = options.nesterov ? options.momentum : 1, own = options.nesterov ? 1 : 0;
    return {A(options.learning_rate), A(options.weight_decay), A(keep), A(take), A(ahead), A(own)};
  }
};

/// The same in programs; the count of steps includes this one. @see ops::OptimizerStep
struct TracedMomentumRule {
  double momentum, dampening, weight_decay;
  index_t nesterov;
  index_t index;  ///< of the parameter among the counts

  static constexpr const char* name = "momentum_sgd";
  static constexpr bool counts = true;
  template <class T>
  MomentumStep<T> step(double learning_rate, index_t count) const {
    const MomentumOptions options{learning_rate, momentum, dampening, nesterov != 0, weight_decay};
    return MomentumRule{options, count == 1}.step<T>();
  }
};

}  // namespace detail

/// v = momentum v + (1 - dampening) (g + decay p), the first v without dampening; p -= rate v.
/// @tparam State  a module with the names, types and placements of the trained parameters
template <class State, class Steps = Buffer<Tensor<index_t, 1>>, class Options = MomentumOptions>
struct MomentumSgd {
  State momentum_buffer;
  Steps steps;  ///< one per trained parameter
  Options options;
  static constexpr names members{"momentum_buffer", "steps", "options"};

  /// @collective none
  /// @throws Error if the module has another number of trained parameters than the optimizer
  template <class M>
  void step(const M& m) const {
    if constexpr (detail::is_traced_module<M>) {
      if constexpr (detail::require_traced<Steps>()) trace_step(m);
    } else {
      const auto rule_of = [&](std::size_t i) {
        return detail::MomentumRule{options, steps.value(index_t(i))++ == 0};
      };
      detail::update_all("momentum_sgd", trained_parameters(m), rule_of,
                         detail::views_of(momentum_buffer));
    }
  }

 private:
  template <class M>
  void trace_step(const M& m) const {
    const auto velocity = detail::traced_states(momentum_buffer);
    const auto has_gradient = detail::has_gradients(m);
    detail::require_equal_counts("momentum_sgd", has_gradient.size(), velocity.size());
    detail::count_steps(steps.value, has_gradient);
    detail::each_gradient(m, [&](const auto& x, const auto& gradient, std::size_t i) {
      const detail::TracedMomentumRule rule{options.momentum, options.dampening,
                                            options.weight_decay, options.nesterov, index_t(i)};
      detail::trace_update(rule, options, steps.value, x, gradient,
                           detail::state_of("momentum_sgd", velocity[i], x));
    });
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

}  // namespace cleave::inline v0::nn
