// The step of an optimizer for one parameter as an operation, for programs: one pass over the
// parameter, its gradient and its state, like a call.
//
//     p', m', v' = step(p, g, m, v, counts, rate)
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/host/update_elements.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/engine/run_op.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::nn::detail {

template <class T, std::size_t>
using Always = T;
template <class T, std::size_t... I>
Types<Always<T, I>...> repeated(std::index_sequence<I...>);

/// Types<T, ..>, N times T.
template <int N, class T>
using Repeated = decltype(repeated<T>(std::make_index_sequence<std::size_t(N)>{}));

}  // namespace cleave::inline v0::nn::detail

namespace cleave::inline v0::ops {

/// The step of an optimizer for a parameter. Operands are the parameter, its gradient, its states,
/// the counts of steps if the rule has them, and the learning rate; results are the new parameter
/// and the new states, in the memory of the old ones if nothing reads these afterwards.
///
/// @tparam Rule  has a `name`, tells whether it `counts` steps, and makes what `update_elements`
///               takes: `rule.step<Real>(rate)`, or with the count of steps of the parameter that
///               is `rule.index` among the counts `rule.step<Real>(rate, count)`
template <class Rule>
struct OptimizerStep {
  Rule rule;

  static constexpr const char* name = Rule::name;

  /// The number of states among so many operands.
  static constexpr int states(std::size_t operands) {
    return int(operands) - 3 - int(Rule::counts);
  }

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    const RuleText letters = cleave::detail::dim_letters(0, dims[0]);
    RuleText text = letters;
    for (int i = 1; i <= states(N) + 1; ++i) text += ',', text += letters;
    text += Rule::counts ? ",z,->" : ",->";
    text += letters;
    for (int i = 0; i < states(N); ++i) text += ',', text += letters;
    return text;
  }
  template <std::size_t N>
  static constexpr RuleText replicated(const std::array<int, N>&) {
    RuleText letters;
    if (Rule::counts) letters += 'z';
    return letters;
  }

  template <class T, class... Rest>
  using result_of = nn::detail::Repeated<states(sizeof...(Rest) + 1) + 1, T>;

  /// The operand that a result replaces: all but the gradient, in their order.
  static constexpr int replaces(int result) { return result + int(result > 0); }

  template <class Device, class T, class... X>
  void kernel(const kernels::On<Device>& on, const Task& task, const kernels::Strided<T>&,
              const X&...) const {
    constexpr int results = (int(sizeof...(X)) - int(Rule::counts)) / 2;
    using R = kernels::real_t<T>;
    const View gradient = view_of(task.in[1]);
    if (gradient.size() == 0) return;
    const auto step = made<R>(task);
    [&]<int... K>(std::integer_sequence<int, K...>) {
      R* const begin_of[] = {static_cast<R*>(start<Device>(task, K))...};
      nn::detail::over_dense_gradient<R>(
          Device{}, gradient, [&](index_t begin, index_t end, const R* slopes) {
            update(on, step, end - begin, slopes, (begin_of[K] + begin)...);
          });
    }(std::make_integer_sequence<int, results>{});
  }

 private:
  template <class Real>
  auto made(const Task& task) const {
    const double rate = *static_cast<const double*>(task.in[task.operands - 1].data);
    if constexpr (Rule::counts) {
      const OperandRef& counts = task.in[task.operands - 2];
      return rule.template step<Real>(
          rate, static_cast<const index_t*>(counts.data)[rule.index * counts.strides[0]]);
    } else {
      return rule.template step<Real>(rate);
    }
  }

  template <class Device, class Step, class Real, class... State>
  static void update(const kernels::On<Device>& on, const Step& step, index_t n,
                     const Real* gradient, Real* parameter, State*... state) {
    update_elements(on, name, step, n, parameter, gradient, state...);
  }

  /// The elements of a result, which at first are those of the operand that it replaces.
  template <class Device>
  static void* start(const Task& task, int result) {
    const OperandRef& from = task.in[replaces(result)];
    const ArrayRef& to = task.out[result];
    if (from.data != to.data)
      strided_copy(
          Device{}, view_of(from),
          View::dense(to.data, from.dtype, cleave::detail::shape_at(from.extents, from.dims)));
    return to.data;
  }

  static View view_of(const OperandRef& x) {
    return {x.data, x.dtype, cleave::detail::shape_at(x.extents, x.dims),
            cleave::detail::shape_at(x.strides, x.dims)};
  }
};

}  // namespace cleave::inline v0::ops
