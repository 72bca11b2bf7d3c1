// The steps of optimizers in traced functions: nodes that compute the new parameters, the new
// optimizer state and the new counts of steps, which a program writes at the end of a run.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/nn/optimizer_step.hpp>
#include <cleave/nn/traced_module.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/spmd/traced_factories.hpp>

namespace cleave::inline v0::nn::detail {

/// Adds one to the counts with begin <= index < end.
struct CountSteps {
  index_t begin, end;

  CLEAVE_HOST_DEVICE index_t operator()(index_t count, index_t index) const {
    return count + index_t(begin <= index && index < end);
  }
};

/// A tensor of a module of traced optimizer state.
struct TracedState {
  const void* value;  ///< of type Traced<T, dims, Device>
  DType dtype;
  int dims;
};

/// Whether the counts of steps of an optimizer are traced: a compile error if not.
template <class Steps>
constexpr bool require_traced() {
  constexpr bool traced = cleave::detail::is_traced<decltype(Steps::value)>;
  static_assert(traced,
                "cleave: the step of an optimizer with state in a traced function: pass the "
                "optimizer to trace, too, as args_of(optimizer)");
  return traced;
}

/// The state of the traced parameters of a module, in their order.
template <class State>
std::vector<TracedState> traced_states(const State& state) {
  std::vector<TracedState> list;
  parameters(state, [&]<class X>(const X& x) {
    list.push_back({&x, dtype_of<typename X::value_type>(), X::dims});
  });
  return list;
}

/// The state of parameter x.
/// @throws Error if it was made for another parameter
template <class X>
const X& state_of(const char* operation, const TracedState& state, const X& x) {
  if (state.dtype != dtype_of<typename X::value_type>() || state.dims != X::dims)
    throw Error(operation,
                std::string("a parameter is ") + name_of(dtype_of<typename X::value_type>()) +
                    " with " + std::to_string(X::dims) +
                    " dimensions, the optimizer was made for one of type " + name_of(state.dtype) +
                    " with " + std::to_string(state.dims),
                {.shapes = to_string(x.shape())});
  return *static_cast<const X*>(state.value);
}

/// Whether each trained parameter of a traced module has a gradient.
template <class M>
std::vector<char> has_gradients(const M& m) {
  std::vector<char> list;
  parameters(m, [&]<class X>(const X& x) {
    if constexpr (tape::is_tracked<X>)
      list.push_back(tape::leaf_of(x, "optimizer").gradient.has_value());
  });
  return list;
}

/// Adds one to the counts of the parameters that have a gradient.
template <class Steps>
void count_steps(const Steps& steps, const std::vector<char>& has_gradient) {
  const std::size_t n = has_gradient.size();
  for (std::size_t begin = 0, end = 0; begin < n; begin = end + 1) {
    for (end = begin; end < n && has_gradient[end]; ++end) {
    }
    if (begin < end)
      map_(CountSteps{index_t(begin), index_t(end)}, steps,
           arange<index_t>(index_t(n), steps.mesh()));
  }
}

/// Calls f(parameter, gradient, i) for each traced parameter that has a gradient; i counts all
/// trained ones.
template <class M, class F>
void each_gradient(const M& m, const F& f) {
  std::size_t i = 0;
  parameters(m, [&]<class X>(const X& x) {
    if constexpr (tape::is_tracked<X>) {
      const auto& gradient = tape::leaf_of(x, "optimizer").gradient;
      if (gradient) f(x.value(), *gradient, i);
      ++i;
    }
  });
}

/// The learning rate: an input of the program, or a number if the optimizer is not an argument of
/// the traced function.
template <class Options>
auto rate_of(const Options& options) {
  if constexpr (is_traced_options<Options>) return options.rate;
  else return cleave::Number<double>{options.learning_rate};
}

/// Traces the step of a parameter: x and its states stand for new values from then on.
/// @param counts  of the steps of all parameters, or None
template <class Rule, class Options, class Counts, class X, class... State>
void trace_update(const Rule& rule, const Options& options, const Counts& counts, const X& x,
                  const X& gradient, const State&... states) {
  const auto call = [&](const auto&... numbers) {
    return cleave::detail::call_as(cleave::detail::Request<>{}, ops::OptimizerStep<Rule>{rule}, x,
                                   gradient, states..., numbers...);
  };
  if constexpr (!Rule::counts) {
    x.update(Rule::name, call(rate_of(options)));
  } else {
    static_assert(
        std::is_same_v<typename X::device_type, Host>,
        "cleave: an optimizer counts its steps on the host: only programs of the host can "
        "contain the steps of optimizers with state");
    std::apply(
        [&](const X& parameter, const State&... now) {
          x.update(Rule::name, parameter);
          (states.update(Rule::name, now), ...);
        },
        call(counts, rate_of(options)));
  }
}

}  // namespace cleave::inline v0::nn::detail
