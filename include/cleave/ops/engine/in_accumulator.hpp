// Composites of 16-bit elements: computed in float, rounded once.
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/operand.hpp>

namespace cleave::inline v0::detail {

/// f(x), computed in the accumulator type of the elements and rounded once.
template <class X, class F>
constexpr auto in_accumulator(const X& x, const F& f) {
  using T = typename X::value_type;
  if constexpr (std::is_same_v<accumulator_t<T>, T>) return f(x);
  else return cast<T>(f(cast<accumulator_t<T>>(x)));
}

}  // namespace cleave::inline v0::detail
