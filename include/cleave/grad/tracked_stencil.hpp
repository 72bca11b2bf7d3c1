// Stencils of values that track gradients: the call on the values, recorded.
#pragma once

#include <tuple>
#include <utility>

#include <cleave/grad/tracked.hpp>
#include <cleave/ops/stencil/stencil_gradient.hpp>

namespace cleave::inline v0::detail {

template <>
struct StencilPath<3> {
  /// @return the results as a tuple
  template <class S, class E, class... X>
  static auto call(const S& stencil, const E& of_domain, const X&... x) {
    const auto y = call_stencil_path(stencil, of_domain, std::tuple<>{}, value_of(x)...);
    return recorded(StencilOp<S, E>{stencil, of_domain}, y, plain(x)...);
  }

 private:
  template <class A>
  static const auto& value_of(const A& a) {
    if constexpr (tape::is_tracked<A>) return a.value();
    else return a;
  }
  template <class A>
  static const A& plain(const A& a) {
    return a;
  }
  template <class T>
  static T plain(const Number<T>& a) {
    return a.value;
  }

  template <class Op, class Y, class... X>
  static auto recorded(const Op& op, const std::tuple<Y>& y, const X&... x) {
    const Y& value = std::get<0>(y);
    return std::tuple{Tracked<Y>(value, new tape::Record<Op, Y, X...>(op, value, x...))};
  }
  template <class Op, class... Y, class... X>
    requires(sizeof...(Y) > 1)
  static auto recorded(const Op& op, const std::tuple<Y...>& y, const X&... x) {
    return tape::tracked_results(new tape::Record<Op, std::tuple<Y...>, X...>(op, y, x...), y);
  }
};

}  // namespace cleave::inline v0::detail
